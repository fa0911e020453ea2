"""Pass over p, all its layers at once: up, then down again.

A block of rows goes side by side, a *lane* each. The pass up keeps q of every node,
the probability (or the greatest probability) of the evidence below it, with its
power of two, 2^(256 k) for k per node and lane, as the walk of a pair does. The
posterior probability of an edge of node n, once n is chosen, is then

    θ q[element] / q[n]

and this *share* is all that a pass down needs: it spreads the probability of being
visited over the edges (marginals), follows one of them (samples, most probable
completions), or is averaged (entropy).

Layer v has its values at ``2 · node_start[v] · lanes`` of the array z: first the
lanes of q of every node, then those of their exponents.
"""

from expecta.engine.passes.choices import complete, draw
from expecta.engine.passes.entropy import entropies
from expecta.engine.passes.flows import edge_flows, posteriors
from expecta.engine.passes.leaves import PassRows, read_rows

__all__ = ["PassRows", "complete", "draw", "edge_flows", "entropies", "posteriors", "read_rows"]
