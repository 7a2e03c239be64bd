"""How a range of values is written in a released table."""


def span(low: str, high: str) -> str:
    """Write a range with both ends in it: a dash between plain numbers, a word where dashes would run together.

    >>> span("20", "29"), span("-5", "-2"), span("2024-01-01", "2024-01-31")
    ('20-29', '-5 to -2', '2024-01-01 to 2024-01-31')
    """
    return f"{low} to {high}" if "-" in low + high else f"{low}-{high}"
