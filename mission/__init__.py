"""The mission, row by row: each row is a thing that a user can do, and a function that does it and tells the number."""
