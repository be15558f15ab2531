"""Benchmarks. Each prints a table and fails if a bound is broken."""
