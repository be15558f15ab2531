"""What a cluster says of itself: topics, offsets and groups."""
