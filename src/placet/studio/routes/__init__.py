"""Routes of the studio, one module for each story."""
