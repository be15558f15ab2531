"""No tests: the tests with other versions of the dependencies (`make test-versions`)."""
