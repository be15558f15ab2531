"""Spark's own files in the checkpoint of a query."""
