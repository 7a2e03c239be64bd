"""Classifiers: naive Bayes and logistic regression, and what they are made of."""
