"""Every process. Consumers of ranges, and what readers see of a transaction."""
