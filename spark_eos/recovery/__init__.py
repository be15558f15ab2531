"""Step 1: recover. survey → plan → recover, and the orphans of earlier runs."""
