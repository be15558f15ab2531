"""Test process. The local broker: processes of this machine, with their data in a folder."""
