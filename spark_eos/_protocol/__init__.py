"""Pure. The protocol as values and functions: no I/O, no clock, no client library."""
