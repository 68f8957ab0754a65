"""Sparse text: LETOR and extreme classification files, and the parser in blocks that both use."""
