"""Saved rankers: the file format, and the state of each kind of ranker."""
