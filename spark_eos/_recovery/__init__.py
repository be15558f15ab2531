"""Planner worker. Step 1: take the query over, complete what is decided, say what is left."""
