"""Hold every reported bound, and every exact answer, against the truth in 30 digits.

    python tests/certified.py bounds 0 10000
    python tests/certified.py pairs 0 10000

draw one hostile pair for each seed of the range, and print how many answers were compared, the
worst ratio of error to bound, or the worst relative error, and the seed it was found at.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass, field
from functools import partial
from unittest.mock import patch

import numpy as np
from mpmath import mp, mpf

from expecta.common.errors import DomainError
from expecta.queries import output_distribution
from expecta.queries.logistic_slope import expected_slope
from expecta.queries.moments import support_rounding
from hostile_pairs import hostile_pair
from oracle import Oracle, normal

LINKS = {
    "logistic": lambda x: 1 / (1 + mp.exp(-x)),
    "probit": normal,
    "tanh": mp.tanh,
    "exp": mp.exp,
}


@dataclass
class Tally:
    """How many answers were compared, and the worst of each kind."""

    compared: dict = field(default_factory=dict)
    worst: dict = field(default_factory=dict)  # ratio and seed
    refused: int = 0

    def add(self, kind, seed, ratio):
        self.compared[kind] = self.compared.get(kind, 0) + 1
        if ratio >= self.worst.get(kind, (-1.0, 0))[0] or ratio != ratio:
            self.worst[kind] = (float(ratio), seed)

    def bound(self, kind, seed, value, truth, error):
        """Compare the error of an answer with the bound that came with it."""
        gap = abs(mpf(float(value)) - truth)
        self.add(kind, seed, float(gap / mpf(float(error))) if error > 0 else float(gap > 0) * 1e9)

    def relative(self, kind, seed, value, truth, size):
        """Compare an exact answer with the truth, relative to the size of what it sums."""
        gap = abs(mpf(float(value)) - truth)
        self.add(kind, seed, float(gap / size) if size > 0 else float(gap > 0) * 1e9)

    def __str__(self):
        lines = [
            f"{kind:28s} {count:9,d} compared, worst {self.worst[kind][0]:.3g} at seed "
            f"{self.worst[kind][1]}"
            for kind, count in sorted(self.compared.items())
        ]
        return "\n".join([*lines, f"{self.refused} refused: too many frequencies"])


def check_bounds(seed, tally, brief=False):
    """Ask the pair of a seed for everything that comes with a bound; in brief for a part of it."""
    pair, evidence, rng = hostile_pair(seed)
    possible = np.flatnonzero(np.isfinite(pair.log_prob(evidence))).tolist()
    checks = (_links, _taylor, _slope, _distributions)
    if brief:
        possible, checks = possible[:1], (checks[seed % 4],)
    for row in possible:
        facts = evidence[row : row + 1]
        truth = Oracle(pair.p, pair.g, facts)
        for check in checks:
            try:
                check(seed, tally, pair, facts, truth, rng)
            except DomainError as problem:
                if "frequencies" not in str(problem):
                    raise
                tally.refused += 1


def _links(seed, tally, pair, facts, truth, rng):
    tol = 10.0 ** -rng.uniform(1, 15)
    outputs = pair.g.n_outputs
    offset = np.zeros(outputs)
    if rng.random() < 0.3:
        offset = rng.normal(scale=10.0 ** rng.uniform(-1, 4), size=outputs)
        if rng.random() < 0.5:  # brings g back to where the link bends
            offset = -pair.expectation(facts).reshape(-1) + rng.normal(size=outputs)
    for link, function in LINKS.items():
        answer = pair.expected(facts, link, tol=tol, offset=offset[None])
        for k in range(outputs):
            value = np.atleast_2d(answer.value.reshape(1, -1))[0, k]
            error = np.atleast_2d(answer.error.reshape(1, -1))[0, k]
            if np.isfinite(value) and np.isfinite(error):
                add = mpf(offset[k])
                true = truth.expected(lambda g, add=add, f=function: f(g + add), k)
                tally.bound(link, seed, value, true, error)


def _taylor(seed, tally, pair, facts, truth, rng):
    order = int(rng.integers(0, 8))
    alpha = None if rng.random() < 0.7 else float(rng.normal())
    for link in ("logistic", "probit", "tanh"):
        answer = pair.expected(facts, link, method="taylor", order=order, alpha=alpha)
        value, error = answer.value.reshape(-1)[0], answer.error.reshape(-1)[0]
        if np.isfinite(value) and np.isfinite(error):
            tally.bound(f"taylor {link}", seed, value, truth.expected(LINKS[link]), error)


def _slope(seed, tally, pair, facts, truth, rng):
    if pair.g.n_outputs > 1:
        return
    value, error = expected_slope(pair, facts, 10.0 ** -rng.uniform(2, 15))
    sigmoid = LINKS["logistic"]
    true = truth.expected(lambda g: sigmoid(g) * sigmoid(-g))
    tally.bound("logistic slope", seed, value[0], true, error[0])


def _distributions(seed, tally, pair, facts, truth, rng):
    tol = 10.0 ** -rng.uniform(1, 13)
    low, high = (float(end.reshape(-1)[0]) for end in pair.range(facts))
    noise = 0.0 if rng.random() < 0.5 else (high - low or 1.0) * 10.0 ** rng.uniform(-5, 1)
    some = [float(truth.g[k][0]) for k in rng.integers(len(truth.g), size=2)]
    points = np.array([*some, *rng.uniform(low - noise, high + noise, 2), low, high])
    levels = np.array([0.0, 1e-12, *rng.random(2), 1.0])
    slack = pair.rounding * (float(pair.parameter_size[0]) + np.abs(points).max())  # of g and c
    for most in (output_distribution.MAX_ATOMS, 0):  # what is enumerated, and what is not
        with patch.object(output_distribution, "MAX_ATOMS", most):
            answer = pair.distribution(facts, noise=noise, tol=tol)
        error, far = answer.error.reshape(-1)[0], answer.resolution.reshape(-1)[0]
        kind = "spectral" if error > 0 else "enumerated"
        if not error:  # exact, but for rounding
            error, far = pair.rounding, far + slack
        shape = (1, pair.g.n_outputs, -1)
        for c, value in zip(points, answer.cdf(points).reshape(shape)[0, 0], strict=True):
            tally.add(f"cdf {kind}", seed, _outside(truth, c, far, noise, value) / error)
        far += slack
        for q, c in zip(levels, answer.quantile(levels).reshape(shape)[0, 0], strict=True):
            tally.add(f"quantile {kind}", seed, _outside(truth, c, far, noise, q) / error)


def _outside(truth, c, far, noise, value):
    """How far a probability lies outside of those at c - far and c + far."""
    least = truth.below(mpf(c) - mpf(far), noise)
    greatest = truth.below(mpf(c) + mpf(far), noise) if far else least
    return float(max(least - mpf(value), mpf(value) - greatest, mpf(0)))


def check_pairs(seed, tally):
    """Ask the pair of a seed for everything that is called exact."""
    pair, evidence, rng = hostile_pair(seed)
    log_prob = pair.log_prob(evidence)
    possible = np.isfinite(log_prob)
    outputs = pair.g.n_outputs
    order = int(rng.integers(2, 5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mean = pair.expectation(evidence).reshape(-1, outputs)
        central = pair.moments(evidence, order, central=True).reshape(-1, outputs, order + 1)
        raw = pair.moments(evidence, order).reshape(-1, outputs, order + 1)
        support = pair.support_probability(evidence)
        low, high = (end.reshape(-1, outputs) for end in pair.range(evidence))
        t = 10.0 ** rng.uniform(-3, 1)
        turned = pair.characteristic(evidence, t).reshape(-1, outputs)
    for row in range(len(evidence)):
        truth = Oracle(pair.p, pair.g, evidence[row : row + 1])
        if not possible[row]:
            assert truth.probability < mpf(10) ** -100_000
            continue
        true = mp.log(truth.probability)
        tally.relative("log_prob", seed, log_prob[row], true, 1 + abs(true))
        on = mp.fsum(w for w, holds in zip(truth.weight, truth.holds, strict=True) if holds)
        tally.relative("support", seed, support[row], on, mpf(1))
        for k in range(outputs):
            size = mpf(float(pair.parameter_size[k]))
            mean_true = truth.expected(lambda g: g, k)
            tally.relative("expectation", seed, mean[row, k], mean_true, size)
            if all(truth.holds) or 1 - on > 2 * support_rounding(pair):
                values = [g[k] for g in truth.g]
                tally.relative("range", seed, low[row, k], min(values), size)
                tally.relative("range", seed, high[row, k], max(values), size)
            phase = mpf(t)
            wave = truth.expected(lambda g, t=phase: mp.expj(t * g), k)
            tally.relative("characteristic", seed, turned[row, k].real, wave.real, mpf(1))
            tally.relative("characteristic", seed, turned[row, k].imag, wave.imag, mpf(1))
            for j in range(2, order + 1):
                loss = size * pair.rounding  # which parameters that cancel take from g
                gap = lambda g, j=j, m=mean_true: (g - m) ** j  # noqa: E731
                absolute, with_loss = (
                    truth.expected(lambda g, j=j, m=mean_true, x=x: (abs(g - m) + x) ** j, k)
                    for x in (mpf(0), loss)
                )
                error = abs(mpf(float(central[row, k, j])) - truth.expected(gap, k))
                far = abs(mpf(float(pair.g.bias[k])) - mean_true)  # of what lies off the support
                unseen = 2 * support_rounding(pair) * (1 + j) * far**j
                beyond = max(error - (with_loss - absolute) - unseen, mpf(0))
                tally.add("central moments", seed, float(beyond / absolute) if beyond else 0.0)
                absolute = truth.expected(lambda g, j=j, x=size: (abs(g) + x) ** j, k)
                exact = truth.expected(lambda g, j=j: g**j, k)
                tally.relative("raw moments", seed, raw[row, k, j], exact, absolute)


CHECKS = {
    "bounds": check_bounds,
    "some bounds": partial(check_bounds, brief=True),
    "pairs": check_pairs,
}


def main(what, first, last):
    """Check a range of seeds."""
    tally = Tally()
    for seed in range(int(first), int(last)):
        CHECKS[what](seed, tally)
        if (seed + 1 - int(first)) % 500 == 0:
            print(f"-- {what}, seeds {first} to {seed}\n{tally}", flush=True)
    print(f"-- {what}, seeds {first} to {int(last) - 1}\n{tally}")
    return tally


if __name__ == "__main__":
    main(*sys.argv[1:])
