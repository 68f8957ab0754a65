"""Consensus of score tables."""
