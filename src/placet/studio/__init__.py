"""The studio: a local web application on top of the same functions as the command line."""
