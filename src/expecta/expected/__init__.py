"""E[output | evidence] of anything: circuits, sums of boxes, or a model that is sampled."""
