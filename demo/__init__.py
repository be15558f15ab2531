"""The demo: `make demo`."""
