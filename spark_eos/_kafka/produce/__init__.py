"""Rows in, delivery reports checked."""
