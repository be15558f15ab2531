"""Planner and commit worker, and the driver of a job. Spark's files in a query's checkpoint."""
