"""What is asked of circuits and pairs, each question one run or pass."""
