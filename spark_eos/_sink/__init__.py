"""The sink: write → prepare → decide → complete, one file a step. `writer.py` is its face."""
