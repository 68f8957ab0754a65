"""Files in parts: how they are split, the pieces that any process can load, the first pass, and slices of tables."""
