"""Random trees by the boxes of their leaves."""

from __future__ import annotations

import numpy as np

from expecta.engine.boxes import runs


def random_boxes(rng, cards, cuts):
    """Cut the space so often: each time a random box by a random variable, if that divides it."""
    boxes = [{}]
    for _ in range(cuts):
        box = boxes.pop(rng.integers(len(boxes)))
        v = int(rng.integers(len(cards)))
        allowed = np.zeros(cards[v], bool)
        spans = box.get(v, (0, int(cards[v])))
        for low, high in zip(spans[::2], spans[1::2], strict=True):
            allowed[low:high] = True
        yes = allowed & (rng.random(cards[v]) < 0.5)
        if not yes.any() or np.array_equal(yes, allowed):
            boxes.append(box)
        else:
            boxes += [box | {v: runs(yes)}, box | {v: runs(allowed & ~yes)}]
    return boxes
