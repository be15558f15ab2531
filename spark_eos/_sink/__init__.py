"""Every process. The sink: plan, write, prepare, decide and complete, one file for each step."""
