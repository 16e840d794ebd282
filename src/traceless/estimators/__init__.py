"""The estimators: what they are given, hold and answer."""
