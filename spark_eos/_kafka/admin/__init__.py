"""Every process. Questions about topics, offsets and groups of a cluster."""
