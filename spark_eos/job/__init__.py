"""What the jobs in `jobs/` share: a file of configuration, a supervised run, a clean stop."""
