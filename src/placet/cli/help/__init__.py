"""The command line itself: help, examples, other names of commands, mistakes in typing."""
