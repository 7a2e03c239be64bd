"""The SELECT that becomes a release: its groups, aggregates and contribution bounds, as one question."""
