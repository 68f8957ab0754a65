"""Rankers whose score of a row depends on the other rows of its list."""
