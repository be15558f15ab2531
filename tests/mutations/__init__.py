"""Does a test notice when a step of the protocol is missing? See `__main__.py`."""
