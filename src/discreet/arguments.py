"""Errors that say which argument is wrong, so that a command can name its option instead."""


class ArgumentError(ValueError):
    """An argument that cannot be used.

    >>> error = ArgumentError("k", "must be at least 1, not 0.")
    >>> print(error, error.parameter)
    k: must be at least 1, not 0. k
    """

    def __init__(self, parameter: str, problem: str) -> None:
        super().__init__(f"{parameter}: {problem}")
        self.parameter, self.problem = parameter, problem


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument of a type that cannot be used."""


def require(holds: object, problem: str, parameter: str = "") -> None:
    """Raise an error about this argument, if one is named, unless the condition holds.

    >>> require(0 >= 1, "must be at least 1, not 0.", "k")
    Traceback (most recent call last):
        ...
    discreet.arguments.ArgumentError: k: must be at least 1, not 0.
    """
    if not holds:
        raise ArgumentError(parameter, problem) if parameter else ValueError(problem)
