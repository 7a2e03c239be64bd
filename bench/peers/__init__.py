"""Scripts that put the same question to peers, each in an environment of its own."""
