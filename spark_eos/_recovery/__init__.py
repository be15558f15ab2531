"""Step 1: recover. Take the query over, complete what is decided, and say what is left."""
