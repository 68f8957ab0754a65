"""Networks and losses in PyTorch."""
