"""Linear models: LinearRegression and LogisticRegression."""
