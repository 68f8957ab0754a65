"""Losses: pure functions of row scores, ``LOSSES[name](s, lists, **params) -> (value, gradient)``."""
