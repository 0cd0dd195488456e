"""The harness: one agent loop on the Messages API. Plain Python; knows neither Django nor `board`."""
