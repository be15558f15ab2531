"""Planner and commit worker. Steps 1 and 4 to 6, and abort."""
