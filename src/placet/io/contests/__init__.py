"""Readers of contests with points."""
