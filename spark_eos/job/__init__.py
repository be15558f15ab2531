"""Driver. The parts of a job: a checked file, a supervised run, a clean stop.

A job describes its file as a model of `sections`, builds its query with `views` and `write`, and
passes both to `command`. The programs in `jobs/` are complete examples.
"""
