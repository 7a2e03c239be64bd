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


def check_argument(holds: object, parameter: str, problem: str) -> None:
    """Raise an error about this argument unless the condition holds.

    >>> check_argument(0 >= 1, "k", "must be at least 1, not 0.")
    Traceback (most recent call last):
        ...
    discreet.arguments.ArgumentError: k: must be at least 1, not 0.
    """
    if not holds:
        raise ArgumentError(parameter, problem)
