"""Models of ballots: Plackett-Luce and models over ordered partitions, with controls and raters."""
