"""From SQL text to a syntax tree, and refusals that point at the text."""
