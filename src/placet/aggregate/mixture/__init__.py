"""Mixtures: groups of voters."""
