"""Linear rankers: scores that are products of features and weights."""
