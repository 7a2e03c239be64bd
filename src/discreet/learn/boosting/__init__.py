"""Additive models by boosting on noisy histograms: ExplainableBoostingClassifier and ExplainableBoostingRegressor."""
