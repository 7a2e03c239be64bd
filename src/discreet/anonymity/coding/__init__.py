"""Tables as whole numbers: columns become codes, and rows that are equal become classes."""
