"""A private recommender: item effects and taste from ratings."""
