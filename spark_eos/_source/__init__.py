"""Driver and task worker. A range of offsets becomes rows: offsets, partitions, read, arrow."""
