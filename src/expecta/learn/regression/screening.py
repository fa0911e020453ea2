"""Keep, of very many variables, those that say most about the target, for each set of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.sparse import csr_array

from expecta.common.arrays import Floats, Ints
from expecta.learn.regression.curves import Curve
from expecta.learn.regression.losses import Loss
from expecta.learn.regression.row_features import FeatureTable, product

MAX_VARIABLES = 1000  # beyond which only some are kept
N_KEPT = (8, 32, 128)  # how many, to choose from by held-out rows


class ScreenedFeatures:
    """The features of rows; of very many variables only the strongest have any.

    Which ones they are is decided by the rows that learn, and by no others: chosen by all rows,
    noise would seem to predict the rows held out.
    """

    def __init__(
        self, whole: FeatureTable, curves: Sequence[Curve], loss: Loss, pull: float
    ) -> None:
        self._whole, self._curves, self._loss, self._pull = whole, curves, loss, pull
        self.n_kept = N_KEPT[0] if len(curves) > MAX_VARIABLES else None
        self._tables: dict[tuple[int, bytes], FeatureTable] = {}
        self._orders: dict[bytes, Ints] = {}  # variables, the strongest first, by rows' weights

    def choose(self, held_out_loss: Callable[[], float]) -> None:
        """Keep as many variables as make the held-out loss least; it is asked for each number."""
        if self.n_kept is None:
            return
        losses = {}
        for self.n_kept in N_KEPT:
            losses[self.n_kept] = held_out_loss()
        self.n_kept = min(losses, key=lambda n: losses[n])
        self._tables = {key: table for key, table in self._tables.items() if key[0] == self.n_kept}

    def table(self, weight: Floats) -> FeatureTable:
        """Return the features for rows of such weights to learn from."""
        if self.n_kept is None:
            return self._whole
        key = self.n_kept, weight.tobytes()
        if key not in self._tables:
            if key[1] not in self._orders:
                self._orders[key[1]] = self._strongest(weight)
            kept = set(self._orders[key[1]][: self.n_kept].tolist())
            curves = [
                curve if variable in kept else Curve.none(len(curve.basis))
                for variable, curve in enumerate(self._curves)
            ]
            self._tables[key] = self._whole.with_curves(curves)
        return self._tables[key]

    def _strongest(self, weight: Floats) -> Ints:
        """Order variables by the drop that a table of each alone promises beyond noise.

        As if features were orthogonal. Cost: two products with all features.
        """
        whole, loss = self._whole, self._loss
        y, by_column = whole.y, whole.by_column
        g = np.broadcast_to(loss.start(y, weight), y.shape)
        curvature = float(np.average(loss.curvature(y, g).mean(axis=1), weights=weight))
        slope = product(by_column, weight[:, None] * (loss.slope(y, g)))
        arrays = by_column.data**2, by_column.indices, by_column.indptr
        squares = product(csr_array(arrays, shape=by_column.shape), weight[:, None])[:, 0]
        share = 1.0 / (curvature * squares + self._pull)
        noise = float(loss.dispersion(y, g, weight).sum()) * curvature * squares * share
        drop = np.sum(slope**2, axis=1) * share - noise
        position = np.repeat(np.arange(len(whole.curves)), np.diff(whole.fine.first))
        total = np.bincount(position, drop, len(whole.curves))
        return np.asarray(whole.order[np.argsort(-total, kind="stable")])
