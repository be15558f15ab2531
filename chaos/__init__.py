"""The chaos bench: faults at random moments, one history, one judge. See `__main__.py`."""
