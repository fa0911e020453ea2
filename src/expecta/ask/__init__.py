"""Questions about a model and its density: groups, rows, audits, and their displays."""
