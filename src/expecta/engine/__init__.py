"""Compiled code: plans over pairs of circuits, one walk, several algebras, passes over p, boxes."""
