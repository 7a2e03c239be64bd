"""How well a table hides people: classes, diversity, closeness, linkage, and what was lost."""
