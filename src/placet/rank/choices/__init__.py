"""Models of choices among alternatives: the conditional logit with its errors, and groups of choosers."""
