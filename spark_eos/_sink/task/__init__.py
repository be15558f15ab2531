"""Task worker. Steps 2 and 3: write and prepare."""
