"""Boosting of weak ranking functions."""
