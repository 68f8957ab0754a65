"""Several kinds of evidence about the same items in one fit; item response of score tables."""
