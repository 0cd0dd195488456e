"""The harness: one agent loop on the Messages API. Plain Python, without Django and `board`."""
