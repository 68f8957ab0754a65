"""Search among rankers, and blends of the best."""
