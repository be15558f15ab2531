"""Command line. `spark-eos`: one file for each command. No command loads pyspark."""
