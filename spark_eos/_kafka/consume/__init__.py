"""Records out, and what a reader can see of a transaction."""
