"""Pure. The offsets and topics of a read, and the output of a query as a read sees it."""
