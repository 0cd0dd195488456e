"""Language models behind the Messages API."""
