"""Models of votes: Bradley-Terry with ties, controls, drift and raters."""
