"""Tables as integer codes, equivalence classes and contingency tables."""
