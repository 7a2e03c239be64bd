"""The SELECT that is a release: its groups, aggregates and limits, as one question to the kernel."""
