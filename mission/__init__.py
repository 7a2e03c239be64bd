"""The mission, row by row: each row names a capability, and a function demonstrates it and returns numbers."""

MODULES = (
    "anonymity",
    "attack_exposed",
    "attack_facts",
    "attack_membership",
    "attack_models",
    "attack_queries",
    "attack_reconstruction",
    "attack_tables",
    "curator",
    "habit",
    "kernel",
    "learning",
    "local",
    "publishing",
    "tradeoff",
)
