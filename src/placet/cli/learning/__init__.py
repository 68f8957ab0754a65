"""Commands that learn to rank: train, score, evaluate, compare."""
