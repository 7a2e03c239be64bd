"""The command line."""

from discreet.cli.main import app

__all__ = ["app"]
