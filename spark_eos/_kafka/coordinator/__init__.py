"""Driver. Requests to transaction coordinators, sent without a producer."""
