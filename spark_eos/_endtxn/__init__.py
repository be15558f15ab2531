"""Planner and commit worker. Commits what is decided, aborts and fences what nobody decided."""
