"""The pictures of the documentation, and how each is made."""
