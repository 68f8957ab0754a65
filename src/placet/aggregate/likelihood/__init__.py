"""What all likelihood models share: the objective, information, priors, existence, controls, raters."""
