"""The meaning of every operation in plain Python, which all engines share; a whole engine of it is in the tests."""
