"""Games with points: ordered margins and goals, of sides of one item or several."""
