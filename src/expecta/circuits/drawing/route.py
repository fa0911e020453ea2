"""The wires between two rows: up from a gate, across on a track, up into the next.

All wires from one gate are one *net* and share a track. Tracks are ordered so that
few wires cross; where they do, only a dot means that they are joined.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["NEAR", "Net", "Route", "clear", "routed"]

TRACK = 9.0  # between tracks
MARGIN = 10.0  # between the outer tracks and the gates
NEAR = 5.0  # upright wires of two nets stay so far apart


@dataclass(frozen=True)
class Net:
    """The x of a gate's output, and the (x, y) of the inputs that it goes to."""

    source: float
    ends: tuple[tuple[float, float], ...]

    @property
    def left(self) -> float:
        """Where its track begins."""
        return min(self.source, *(x for x, _ in self.ends))

    @property
    def right(self) -> float:
        """Where its track ends."""
        return max(self.source, *(x for x, _ in self.ends))


@dataclass(frozen=True)
class Route:
    """Lines, as lists of corners from a source to an input, and the dots where they join."""

    lines: tuple[tuple[tuple[float, float], ...], ...]
    dots: tuple[tuple[float, float], ...]


def routed(nets: Sequence[Net], top: float) -> tuple[list[Route], float]:
    """Route the nets through a channel that begins at ``top``; returns its height too."""
    tracks = _tracks(nets)
    height = 2 * MARGIN + TRACK * max(tracks)
    bottom = top + height
    return [
        _route(net, bottom - MARGIN - TRACK * track, bottom)
        for net, track in zip(nets, tracks, strict=True)
    ], height


def clear(x: float, own: float, sources: Iterable[float]) -> float:
    """Shift an input a little: right above its own source, or clear of another's.

    Upright wires from two sources could otherwise lie on top of one another. Sources
    are several times ``NEAR`` apart, so that this leads from none to the next.

    >>> clear(52.0, 50.0, [50.0, 90.0]), clear(88.0, 50.0, [50.0, 90.0])
    (50.0, 85.0)
    """
    if abs(x - own) <= NEAR:
        return own
    for source in sources:
        if abs(x - source) < NEAR:
            return source + (NEAR if x >= source else -NEAR)
    return x


def _tracks(nets: Sequence[Net]) -> list[int]:
    """Give every net a track, counted upwards, such that none share a stretch of it."""
    bent = [i for i, net in enumerate(nets) if net.left < net.right]
    order = sorted(bent, key=lambda i: nets[i].source)
    # Neighbours change places while that makes fewer crossings, as in a bubble sort.
    for _ in order:
        changed = False
        for i in range(len(order) - 1):
            low, high = nets[order[i]], nets[order[i + 1]]
            if _crossings(high, low) < _crossings(low, high):
                order[i], order[i + 1] = order[i + 1], order[i]
                changed = True
        if not changed:
            break
    tracks = [0] * len(nets)
    for i, net in enumerate(order):
        tracks[net] = max(
            (tracks[other] + 1 for other in order[:i] if _share(nets[net], nets[other])), default=0
        )
    return tracks


def _share(one: Net, other: Net) -> bool:
    return one.left <= other.right + NEAR and other.left <= one.right + NEAR


def _crossings(low: Net, high: Net) -> int:
    """Count the crossings of two nets when ``low`` has the lower track."""
    count = int(low.left < high.source < low.right)
    return count + sum(high.left < x < high.right for x, _ in low.ends)


def _route(net: Net, track: float, bottom: float) -> Route:
    """Draw a net: one line if it has one input, else a trunk, a track and its branches."""
    start = (net.source, bottom)
    if len(net.ends) == 1:
        x, y = net.ends[0]
        corners = () if x == net.source else ((net.source, track), (x, track))
        return Route(((start, *corners, (x, y)),), ())
    lines = [(start, (net.source, track)), ((net.left, track), (net.right, track))]
    lines += [((x, track), (x, y)) for x, y in net.ends]
    above = [x for x, _ in net.ends]
    dots = []
    for x in sorted({net.source, *above}):
        arms = (x > net.left) + (x < net.right) + (x == net.source) + (x in above)
        if arms > 2:
            dots.append((x, track))
    return Route(tuple(lines), tuple(dots))
