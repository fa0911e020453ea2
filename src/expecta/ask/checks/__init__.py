"""Check a density against rows: likelihood, pairs of columns, and means over groups."""
