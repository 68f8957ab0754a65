"""What a fit is asked for besides data: further metrics and their history."""
