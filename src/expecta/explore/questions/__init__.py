"""The questions and their answers."""
