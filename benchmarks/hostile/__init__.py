"""Attack what reads from outside: mutated files, texts of conditions, processes that are killed."""
