"""The board: what people see and share. A whole product to which the workers are clients."""

__version__ = "0.1.0"
