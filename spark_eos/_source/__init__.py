"""Offsets → partitions → read → arrow: a range of offsets becomes rows. One file a step."""
