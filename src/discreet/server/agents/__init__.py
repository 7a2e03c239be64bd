"""Tools for AI agents over the Model Context Protocol: they may ask anything, and cannot overspend."""
