"""Pure. The transactions of a batch: states, decision, recovery, ownership."""
