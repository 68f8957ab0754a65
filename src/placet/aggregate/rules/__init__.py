"""Rules: functions from ballots or pairs to scores."""
