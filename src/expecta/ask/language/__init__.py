"""The language of conditions on rows: text and facts, as disjoint boxes."""
