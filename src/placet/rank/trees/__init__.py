"""Rankers whose score is a sum or mean of regression trees."""
