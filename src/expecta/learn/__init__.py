"""Learning circuits from data."""
