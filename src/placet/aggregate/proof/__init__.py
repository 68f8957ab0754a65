"""Proof: how few votes would change a result, and certificates that anyone can check."""
