"""Questions about a model: of groups, of single decisions, of columns."""
