"""Which inputs made a prediction what it is: conditional Shapley values by shap.

Shapley values need the model's prediction where only some inputs are known. The usual
explainers put values of other rows into the unknown ones, as if columns were independent.
Here an unknown input stays unknown, and the prediction is the exact expectation given the
known ones: the background is a single row of which nothing is known.

    python examples/shapley.py    (needs shap: pip install shap)
"""

from __future__ import annotations

import numpy as np
import shap
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from expecta import ExpectedPredictor
from expecta.datasets import load_insurance


def main() -> None:
    """Explain three predictions of a boosted model of insurance charges."""
    table = load_insurance()
    charges = table.pop("charges")
    words = ["sex", "smoker", "region"]
    encoder = OrdinalEncoder()
    table[words] = encoder.fit_transform(table[words])
    numbers = make_column_transformer(("passthrough", list(table)))
    model = make_pipeline(numbers, GradientBoostingRegressor(random_state=0)).fit(table, charges)
    expected = ExpectedPredictor(model).fit(table)

    def predict(rows: np.ndarray) -> np.ndarray:
        return expected.predict(dict(zip(table, np.asarray(rows, float).T, strict=True)))

    nothing = np.full((1, table.shape[1]), np.nan)
    explainer = shap.explainers.Exact(predict, shap.maskers.Independent(nothing))
    found = explainer(table.iloc[:3].to_numpy(float))
    print(f"expected charges if nothing is known: {found.base_values[0]:,.0f}")
    for row, values in zip(table.iloc[:3].to_dict("records"), found.values, strict=True):
        total = found.base_values[0] + values.sum()
        print(f"\npredicted {total:,.0f}, because")
        for name, value in sorted(zip(row, values, strict=True), key=lambda one: -abs(one[1])):
            print(f"  {name:9} {row[name]:6.4g}  {value:+8,.0f}")


if __name__ == "__main__":
    main()
