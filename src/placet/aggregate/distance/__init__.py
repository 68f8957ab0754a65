"""Models based on distances between orders, and on matrices of rank differences."""
