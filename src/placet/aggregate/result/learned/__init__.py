"""What a model learns beside scores: raters, sources, tasks, controls, and how scores move in time."""
