"""Task worker. Producers, and the check of their delivery reports."""
