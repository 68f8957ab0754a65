"""Placet turns any evidence of preference into a ranking, says how sure it is, and can prove what it claims."""

__version__ = "0.1.0"
