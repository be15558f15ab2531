"""Transaction coordinators, asked over the wire from outside of any producer."""
