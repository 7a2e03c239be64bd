"""A source of randomness with known bytes, for exhaustive tests of samplers."""


class EndOfScriptError(Exception):
    """A sampler asked for more bytes than the script has."""


class Script:
    """A source of randomness that returns the given bytes, in order."""

    def __init__(self, *parts):
        self._left = b"".join(parts)

    def bytes(self, count):
        if len(self._left) < count:
            raise EndOfScriptError
        out, self._left = self._left[:count], self._left[count:]
        return bytearray(out)

    @property
    def left(self):
        return len(self._left)
