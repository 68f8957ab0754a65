"""Files in parts: how they are split, the pieces that any process can load, and the first pass over them."""
