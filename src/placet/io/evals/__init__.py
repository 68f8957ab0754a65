"""Logs of evaluations by other programs, found by their content and read as votes or scores."""
