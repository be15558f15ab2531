"""The broker: processes of this machine, in a folder."""
