"""Private evaluation, selection and tuning of models."""
