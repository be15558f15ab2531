"""What a job is made of: a file of configuration, a supervised run, a clean stop.

A job describes its file as a model of `sections`, builds its query from the file with `views` and
`write`, and hands both to `command`. The programs in `jobs/` are complete examples.
"""
