"""What is asked about: one number that a model returns, whatever computes its expectation."""
