"""Rows to learn a circuit from: complete, or completed several times."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from expecta.circuits.probabilistic import ProbabilisticCircuit
from expecta.circuits.regression import RegressionCircuit
from expecta.common.arrays import Floats, Ints
from expecta.densities.density import Density
from expecta.densities.finer_circuit import finer_circuit
from expecta.learn.regression import Curve, Loss
from expecta.learn.regression.curves import MAX_RICH
from expecta.tables import Encoder
from expecta.tables.refine_bins import coarse_codes, refine_encoder
from expecta.tables.table import Table

FOLDS = 5
TARGET_ROUNDS = 3  # of weighing completions by the target and learning anew
MAX_ALL_RICH = 600  # parameters of all columns' rich tables together


class Seeds(NamedTuple):
    """A seed for each thing that is drawn."""

    density: int
    folds: int
    completions: int
    calibration: int

    @classmethod
    def of(cls, random_state: Any) -> Seeds:
        """Derive them from scikit-learn's kind of seed."""
        if isinstance(random_state, np.random.RandomState | np.random.Generator):
            draw = getattr(random_state, "integers", getattr(random_state, "randint", None))
            random_state = int(draw(2**31 - 1))  # type: ignore[misc]
        rng = np.random.default_rng(random_state)
        return cls(*(int(seed) for seed in rng.integers(2**31 - 1, size=len(cls._fields))))


class FinerBins(NamedTuple):
    """Finer bins than a density's, for any circuit that has the density's variables."""

    encoder: Encoder
    coarse: list[Ints]  # per column, the density's bin of each
    shares: list[Floats]  # per column, its share of the density's bin

    @classmethod
    def of(cls, density: Density, table: Table, max_bins: int, weight: Floats) -> FinerBins:
        """Cut by the numbers of a table; see :meth:`Density.refined`."""
        fine, shares = refine_encoder(density.encoder_, table, max_bins, sample_weight=weight)
        return cls(fine, coarse_codes(fine, density.encoder_), shares)

    def coarse_rows(self, codes: Ints) -> Ints:
        """Return rows of the finer bins in the density's; -1, unknown, stays."""
        columns = zip(self.coarse, codes.T, strict=True)
        rows = np.stack([np.append(bin_of, -1)[code] for bin_of, code in columns], axis=1)
        return rows.astype(codes.dtype)

    def density(self, circuit: ProbabilisticCircuit) -> Density:
        """Return the density over the finer bins."""
        return Density(finer_circuit(circuit, self.coarse, self.shares), self.encoder)


class Training(NamedTuple):
    """Complete rows to learn a circuit from."""

    codes: Ints  # (rows, variables)
    origin: Ints  # (rows,) row of the table; an incomplete one is completed several times
    weight: Floats  # (rows,)
    fold: Ints | None  # (rows,)
    times: Ints  # (rows,) how many completions the row has

    def sampled(self, n: int, seed: int) -> Training:
        """Return n of the table's rows, drawn evenly, with all their completions."""
        rows = np.unique(self.origin)
        chosen = np.random.default_rng(seed).choice(rows, n, replace=False)
        kept = np.isin(self.origin, chosen)
        fold = None if self.fold is None else self.fold[kept]
        codes, origin, weight = self.codes[kept], self.origin[kept], self.weight[kept]
        return Training(codes, origin, weight, fold, self.times[kept])

    def with_first_fold_only(self) -> Training:
        """Return the same rows, of which one fold is held out."""
        if self.fold is None:
            return self
        return self._replace(fold=np.where(self.fold == 0, 0, -1))

    def completed_anew(self, p: ProbabilisticCircuit, codes: Ints, seed: int) -> Training:
        """Return other completions of the table's rows, whose unknown cells are -1 in ``codes``."""
        known, full = codes[self.origin], self.codes.copy()
        incomplete = np.any(known < 0, axis=1)
        if np.any(incomplete):
            full[incomplete] = completed(p, known[incomplete], 1, seed)
        return self._replace(codes=full)

    def given_target(self, y: Floats, g: RegressionCircuit, loss: Loss, before: Floats) -> Floats:
        """Weigh the completions of a row by how well they go with its target.

        A row's known inputs say what its unknown ones may be, and so does its target. The
        weight of a row stays what it was; ``before`` are the weights that g has learned from.
        """
        value = g(self.codes).reshape(len(self.codes), -1)
        target = y[self.origin]
        dispersion = loss.dispersion(target, value, before)
        far = np.sum(loss.value(target, value) / np.maximum(dispersion, 1e-300), axis=1)
        least = np.full(len(y), np.inf)
        np.minimum.at(least, self.origin, far)
        likely = self.weight * np.exp(least[self.origin] - far)
        total = np.bincount(self.origin, likely, len(y))[self.origin]
        return likely / total * self.weight * self.times

    def noise(self, y: Floats, folds: list[RegressionCircuit]) -> float:
        """Size of what circuits leave unexplained of the folds that they did not see."""
        assert self.fold is not None
        residual = np.zeros(len(self.fold))
        for number, g in enumerate(folds):
            out = self.fold == number
            residual[out] = y[self.origin[out]] - g(self.codes[out])
        return size(residual, np.where(self.fold >= 0, self.weight, 0.0))

    def held_out_weight(self, n_rows: int) -> Floats:
        """Return how much each row of the table counts among those that folds left out."""
        assert self.fold is not None
        out = self.fold >= 0
        counted = np.bincount(self.origin[out], self.weight[out], n_rows)
        return counted.astype(np.float64)


def column_curves(encoder: Encoder, **options: Any) -> list[Curve]:
    """Return what the tables of each column may be: a curve if its values are in order."""
    curves = []
    options = {"max_rich": min(MAX_RICH, MAX_ALL_RICH // len(encoder.columns_)), **options}
    for whole in encoder.columns_:
        column = whole.plain  # what is missing lies nowhere on a curve
        if column.kind in ("integer", "number", "date", "datetime", "duration"):
            # no difference over- or underflows
            unit = float(np.abs(column.means).max(initial=0.0)) or 1.0
            single = column.lows == column.highs
            curves.append(Curve.of(whole.counts, column.means / unit, single=single, **options))
        else:
            curves.append(Curve.of(whole.counts, **options))
    return curves


def completed(p: ProbabilisticCircuit, codes: Ints, n: int, seed: int) -> Ints:
    """Draw completions of rows, n of each; those of probability zero as if nothing were known."""
    rng = np.random.default_rng(seed)
    possible = np.isfinite(p.log_prob(codes))
    evidence = np.where(possible[:, None], codes, -1).astype(np.int32)
    drawn = p.sample(n, given=evidence, seed=rng).reshape(-1, codes.shape[1])
    known = np.repeat(codes, n, axis=0)
    return np.where(known >= 0, known, drawn).astype(np.int32)


def size(values: Floats, weight: Floats) -> float:
    """Root of the weighted mean square, of numbers whose squares may leave the range of floats."""
    most = float(np.abs(values).max(initial=0.0)) or 1.0
    return most * float(np.sqrt(np.average((values / most) ** 2, weights=weight)))


def spread_of(values: Floats, weight: Floats) -> float:
    """Weighted standard deviation of the numbers of positive weight; 0 where there are none."""
    used = weight > 0
    if not np.any(used):
        return 0.0
    values, weight = values[used], weight[used]
    return size(values - np.average(values, weights=weight), weight)
