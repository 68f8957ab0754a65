"""Which pair to ask next, and when to stop: answers that hold however often they are looked at."""
