"""Offsets and topics of what is read."""
