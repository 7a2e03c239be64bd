"""What was measured, for people to read: as parts, as a page, with small pictures."""
