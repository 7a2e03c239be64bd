"""The mission, row by row: each row is a thing that a user can do, and a function that does it and returns numbers."""

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
    "tradeoff",
)
