"""The protocol as values and pure functions: no I/O, no clock, no client library."""
