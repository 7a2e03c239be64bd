"""From SQL text to a syntax tree, and refusals that name the source position."""
