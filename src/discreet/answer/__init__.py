"""Answers and explanations: the model, and how they are shown as text, HTML, plots and data frames."""
