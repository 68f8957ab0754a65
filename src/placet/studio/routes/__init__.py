"""Routes of the studio, one module per area."""
