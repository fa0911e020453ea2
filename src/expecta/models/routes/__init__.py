"""Ways to the expectation of a model: additive and boxes, which are exact, and sampling."""
