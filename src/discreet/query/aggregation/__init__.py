"""The SELECT that is a release: groups, aggregates and contribution bounds, as one question."""
