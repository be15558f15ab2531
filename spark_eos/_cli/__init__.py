"""The command line: `spark-eos`. One file a command; none of them loads pyspark."""
