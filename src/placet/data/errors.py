"""The one exception for data that cannot be used as they are."""


class DataError(ValueError):
    """Data that cannot be used as they are: the message says where, what, how many, and the way out."""
