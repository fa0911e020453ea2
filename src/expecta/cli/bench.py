"""Time questions on this machine beside sampling, and check that both agree."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from scipy.special import comb

from expecta import __version__
from expecta.ask.language.query import Query
from expecta.ask.printed_answer import text_table
from expecta.circuits.evidence import Evidence
from expecta.common import settings
from expecta.common.arrays import Bools, Floats, Ints
from expecta.densities import ChowLiu
from expecta.estimators import CircuitRegressor

MAX_ERRORS = 6.0  # standard errors by which exact and sampled answers may differ
PERMILLE = 0.001
GROUP = "smoker == 'yes' and age >= 30"
N_ROWS = 100  # to predict, half of their cells unknown
REPEATS = 3  # of exact questions; the shortest time counts

Estimate: TypeAlias = tuple[Floats, Floats]  # means and standard errors


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
    model = CircuitRegressor(
        density=ChowLiu() if quick else None,
        max_bins=32 if quick else 256,
        calibration_rows=0 if quick else None,
        random_state=0,
    )
    _, seconds = _timed(lambda: model.fit(table, charges), 1)
    draws = 500 if quick else 2000
    return {
        "version": __version__,
        "threads": settings.current().n_threads(),
        "fit_seconds": seconds,
        "draws": draws,
        "measured": [
            _compared(question, exact, sample)
            for question, exact, sample in _questions(model, table, draws)
        ],
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


def _questions(
    model: CircuitRegressor, table: dict[str, Any], draws: int
) -> list[tuple[str, Callable[[], Floats], Callable[[], Estimate]]]:
    """Return each question, how it is asked exactly, and how by sampling."""
    encoder, rng = model.encoder_, np.random.default_rng(0)
    chosen = rng.choice(len(table["age"]), N_ROWS, replace=False)
    rows = {
        name: [
            None if hidden else cell
            for cell, hidden in zip(cells[chosen].tolist(), rng.random(N_ROWS) < 0.5, strict=True)
        ]
        for name, cells in table.items()
    }
    first = {name: cells[:1].tolist() for name, cells in table.items()}

    def sample(evidence: Evidence) -> Estimate:
        """Average the model over completions of each row; and the standard errors."""
        drawn = model.pair_.p.sample(draws, given=evidence, seed=0)
        values = model.circuit_(drawn.reshape(-1, drawn.shape[-1])).reshape(len(evidence), draws)
        return values.mean(axis=1), values.std(axis=1) / np.sqrt(draws)

    known = encoder.evidence(rows)
    group = Query.read(GROUP, encoder).evidence(encoder)
    assert len(group) == 1  # a single box, which sampling takes too
    groups = [
        encoder.where({"region": region, "smoker": smoker})
        for region, smoker in zip(*model.split("region", "smoker").labels, strict=True)
    ]

    def sample_split() -> Estimate:
        mean, error = zip(*(sample(part) for part in groups), strict=True)
        return np.concatenate(mean), np.concatenate(error)

    codes = encoder.codes(first)[0]
    told: Bools = (np.arange(2 ** len(codes))[:, None] >> np.arange(len(codes))) & 1 == 1
    coalitions: Ints = np.where(told, codes, -1).astype(np.int32)
    weights = _shapley_weights(told)

    def sample_shapley() -> Estimate:
        """Sample the values of coalitions; the weights are the same."""
        mean, error = sample(Evidence.rows(coalitions, encoder.cardinalities_))
        return weights @ mean, np.sqrt(weights**2 @ error**2)

    return [
        (
            f"predict {N_ROWS} rows, half of the cells missing",
            lambda: model.predict(rows),
            lambda: sample(known),
        ),
        (f"ask: {GROUP}", lambda: np.array([model.ask(GROUP).mean]), lambda: sample(group)),
        (
            "split by region and smoker",
            lambda: model.split("region", "smoker").mean,
            sample_split,
        ),
        ("shapley: one row, 6 columns", lambda: model.shapley(first).values[0], sample_shapley),
    ]


def _compared(
    question: str, exact: Callable[[], Floats], sample: Callable[[], Estimate]
) -> dict[str, Any]:
    exact()  # compiles
    truth, seconds = _timed(exact, REPEATS)
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
    n = known.shape[1]
    size = known.sum(axis=1)
    joined = 1.0 / (n * comb(n - 1, np.maximum(size - 1, 0)))
    before = -1.0 / (n * comb(n - 1, np.minimum(size, n - 1)))
    return np.where(known.T, joined, before)


def _timed(run: Callable[[], Any], times: int) -> tuple[Any, float]:
    """Run a function several times, and return its result and the shortest time in seconds."""
    spent = []
    for _ in range(times):
        start = time.perf_counter()
        result = run()
        spent.append(time.perf_counter() - start)
    return result, min(spent)
