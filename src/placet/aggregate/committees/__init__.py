"""Committees from approval ballots: proportional rules, with all committees that tie."""
