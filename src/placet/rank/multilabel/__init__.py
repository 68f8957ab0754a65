"""Rankers of labels: documents with features or text, and labels that form tiers."""
