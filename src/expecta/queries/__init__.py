"""Answer what is asked of circuits and pairs, each question by one run or pass."""
