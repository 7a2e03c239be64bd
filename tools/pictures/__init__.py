"""The pictures of the documentation."""
