"""Time questions on this machine beside sampling, and check that both agree."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from expecta import __version__
from expecta.ask.language.query import Query
from expecta.ask.printed_answer import text_table
from expecta.circuits.evidence import Evidence
from expecta.common import settings
from expecta.common.arrays import Bools, Floats, Ints
from expecta.densities import ChowLiu
from expecta.estimators import CircuitRegressor

__all__ = ["format_times", "measure"]

MAX_ERRORS = 6.0  # standard errors by which exact and sampled answers may differ
PERMILLE = 0.001
GROUP = "smoker == 'yes' and age >= 30"


def measure(quick: bool) -> dict[str, Any]:
    """Learn the insurance table, and time four questions both ways.

    Sampling draws completions from the same density and averages the model over them; it
    agrees if it is within six standard errors of the exact answer. ``ratio`` is its time
    for so many draws over that of the exact answer; ``ratio_at_permille`` the same for as many
    draws as a standard error of 0.1% takes, not measured but computed from these.
    """
    from expecta.datasets import load_insurance

    table = load_insurance(as_frame="dict")
    charges = table.pop("charges")
    density = ChowLiu() if quick else None
    model = CircuitRegressor(
        density=density,
        max_bins=32 if quick else 256,
        calibration_rows=0 if quick else None,
        random_state=0,
    )
    _, seconds = _timed(lambda: model.fit(table, charges), 1)
    bench = _Bench(model, table, 500 if quick else 2000, 3)
    return {
        "version": __version__,
        "threads": settings.current().n_threads(),
        "fit_seconds": seconds,
        "draws": bench.draws,
        "measured": [bench.predict(), bench.ask(), bench.split(), bench.shapley()],
    }


def format_times(times: dict[str, Any]) -> str:
    """Return the measurements as a text."""
    lines: list[dict[str, Any]] = times["measured"]
    columns = {
        "question": [line["question"] for line in lines],
        "exact ms": [1000 * line["seconds"] for line in lines],
        "sampled ms": [1000 * line["sampled_seconds"] for line in lines],
        "its error": [f"{line['sampled_error']:.2%}" for line in lines],
        "ratio": [f"{line['ratio']:.3g}" for line in lines],
        "at 0.1%": [f"{line['ratio_at_permille']:,.0f}" for line in lines],
        "agree": ["yes" if line["agrees"] else "NO" for line in lines],
    }
    return "\n".join(
        [
            f"expecta {times['version']}, {times['threads']} thread(s); learned the insurance "
            f"table in {times['fit_seconds']:.1f} s",
            *text_table(columns),
            f"sampled: {times['draws']} draws from the same density for each row or group. Its "
            f"error: standard error, relative (root mean squares).",
            "ratio: sampled over exact; at 0.1%: computed for as many draws as that error takes.",
            "ask computes a distribution with its quantiles too, where sampling has a mean.",
        ]
    )


class _Bench:
    """Asks the same of a pair exactly and by sampling."""

    def __init__(
        self, model: CircuitRegressor, table: dict[str, Any], draws: int, times: int
    ) -> None:
        self.model, self.draws, self.times = model, draws, times
        rng = np.random.default_rng(0)
        chosen = rng.choice(len(table["age"]), 100, replace=False)
        self.rows = {
            name: [
                None if hidden else cell
                for cell, hidden in zip(cells[chosen].tolist(), rng.random(100) < 0.5, strict=True)
            ]
            for name, cells in table.items()
        }
        self.first = {name: cells[:1].tolist() for name, cells in table.items()}

    def predict(self) -> dict[str, Any]:
        evidence = self.model.encoder_.evidence(self.rows)
        return self._both(
            "predict 100 rows, half of the cells missing",
            lambda: self.model.predict(self.rows),
            lambda: self._sampled(evidence),
        )

    def ask(self) -> dict[str, Any]:
        evidence = Query.read(GROUP, self.model.encoder_).evidence(self.model.encoder_)
        assert len(evidence) == 1  # a single box, which sampling takes too
        return self._both(
            f"ask: {GROUP}",
            lambda: np.array([self.model.ask(GROUP).mean]),
            lambda: self._sampled(evidence),
        )

    def split(self) -> dict[str, Any]:
        encoder = self.model.encoder_
        labels = self.model.split("region", "smoker").labels
        groups = [
            encoder.where({"region": region, "smoker": smoker})
            for region, smoker in zip(*labels, strict=True)
        ]

        def sample() -> tuple[Floats, Floats]:
            parts = [self._sampled(group) for group in groups]
            mean, error = zip(*parts, strict=True)
            return np.concatenate(mean), np.concatenate(error)

        return self._both(
            "split by region and smoker",
            lambda: self.model.split("region", "smoker").mean,
            sample,
        )

    def shapley(self) -> dict[str, Any]:
        """Values of coalitions are what is sampled; the weights are the same."""
        encoder = self.model.encoder_
        codes = encoder.codes(self.first)[0]
        known: Bools = (np.arange(2 ** len(codes))[:, None] >> np.arange(len(codes))) & 1 == 1
        told: Ints = np.where(known, codes, -1).astype(np.int32)
        weights = _shapley_weights(known)

        def sample() -> tuple[Floats, Floats]:
            mean, error = self._sampled(Evidence.rows(told, encoder.cardinalities_))
            return weights @ mean, np.sqrt(weights**2 @ error**2)

        return self._both(
            "shapley: one row, 6 columns",
            lambda: self.model.shapley(self.first).values[0],
            sample,
        )

    # ---------------------------------------------------------------------------------

    def _sampled(self, evidence: Evidence) -> tuple[Floats, Floats]:
        """Average the model over completions of each row; and the standard errors."""
        drawn = self.model.pair_.p.sample(self.draws, given=evidence, seed=0)
        rows = drawn.reshape(-1, drawn.shape[-1])
        values = self.model.circuit_(rows).reshape(len(evidence), self.draws)
        return values.mean(axis=1), values.std(axis=1) / np.sqrt(self.draws)

    def _both(
        self,
        question: str,
        exact: Callable[[], Floats],
        sample: Callable[[], tuple[Floats, Floats]],
    ) -> dict[str, Any]:
        exact()  # compiles
        truth, seconds = _timed(exact, self.times)
        (mean, error), sampled = _timed(sample, 1)
        size = float(np.abs(truth).max())
        relative = float(np.sqrt(np.mean(error**2) / np.mean(truth**2)))
        return {
            "question": question,
            "seconds": seconds,
            "sampled_seconds": sampled,
            "ratio": sampled / seconds,
            "ratio_at_permille": sampled / seconds * (relative / PERMILLE) ** 2,
            "sampled_error": relative,
            "agrees": bool(np.all(np.abs(truth - mean) <= MAX_ERRORS * error + 1e-9 * size)),
        }


def _shapley_weights(known: Bools) -> Floats:
    """Return what each coalition's value counts for each column.  # (columns, coalitions)."""
    from scipy.special import comb

    n = known.shape[1]
    size = known.sum(axis=1)
    joined = 1.0 / (n * comb(n - 1, np.maximum(size - 1, 0)))
    before = -1.0 / (n * comb(n - 1, np.minimum(size, n - 1)))
    weights: Floats = np.where(known.T, joined, before)
    return weights


def _timed(run: Callable[[], Any], times: int) -> tuple[Any, float]:
    """Run a function several times, and return its result and the shortest time in seconds."""
    spent = []
    for _ in range(times):
        start = time.perf_counter()
        result = run()
        spent.append(time.perf_counter() - start)
    return result, min(spent)
