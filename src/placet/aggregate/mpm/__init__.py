"""The multinomial preference model."""
