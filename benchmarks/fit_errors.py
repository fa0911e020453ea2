"""Compare standard errors from the fit with those of fits from the beginning.

    python -m benchmarks.fit_errors insurance --refits 40
    python -m benchmarks.fit_errors houses --refits 30
    python -m benchmarks.fit_errors insurance --missing 0.2

Rows of the insurance table, or 1,500 simulated house prices, complete and with 40% of the cells
hidden; ``--missing`` hides a share of the cells of the training rows as well. A refit learns
everything anew, its encoding, structure, sizes and the scale of the target too, from rows of
random weights and with another seed. Those that choose the scale of the fit are printed by
themselves as well.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from benchmarks.group_answers import simulate_houses
from expecta import CircuitRegressor, datasets


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser("benchmarks.fit_errors", description=__doc__)
    parser.add_argument("table", choices=("insurance", "houses"))
    parser.add_argument("--refits", type=int, default=40)
    parser.add_argument("--missing", type=float, default=0.0)
    given = parser.parse_args(words)
    refits = given.refits
    if given.table == "insurance":
        table = datasets.load_insurance()
        X, y = table.drop(columns="charges"), table.charges
    else:
        X, y = simulate_houses(1500, 3)
    rows = X.sample(80, random_state=1).astype(object)
    hidden = np.random.default_rng(0).random(rows.shape) < 0.4
    hidden[:40] = False
    rows = rows.mask(hidden)
    X = X.astype(object).mask(np.random.default_rng(2).random(X.shape) < given.missing)
    model = CircuitRegressor(random_state=0, calibration_rows=0).fit(X, y)
    begun = time.process_time()
    _, error = model.predict(rows, return_error="fit")
    cost = time.process_time() - begun
    predictions, alike, begun = [], [], time.process_time()
    for seed in range(refits):
        weight = np.random.default_rng(1000 + seed).exponential(size=len(y))
        other = CircuitRegressor(random_state=seed, calibration_rows=0)
        predictions.append(other.fit(X, y, sample_weight=weight / weight.mean()).predict(rows))
        alike.append(other.target_scale_ == model.target_scale_)
    per_refit = (time.process_time() - begun) / refits
    every = np.array(predictions)
    for which, of in ((np.ones(refits, bool), "refits"), (np.array(alike), "refits of its scale")):
        truth = np.std(every[which], axis=0, ddof=1)
        for what, part in (("complete rows", slice(0, 40)), ("40% hidden", slice(40, None))):
            ratio = np.sqrt(np.mean(error[part] ** 2) / np.mean(truth[part] ** 2))
            print(f"{what}: standard error over that of {which.sum()} {of} {ratio:.2f}")
    print(f"all 30 replicates cost {cost / per_refit:.1f} refits")


if __name__ == "__main__":
    main()
