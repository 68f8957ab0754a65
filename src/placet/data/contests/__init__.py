"""Contests of two sides, each of one item or several, with points."""
