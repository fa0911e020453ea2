"""Learn PSDDs: deterministic densities, grown by splitting and cloning."""

from __future__ import annotations

import numpy as np

from expecta.circuits.constructions import independent
from expecta.circuits.probabilistic import ProbabilisticCircuit
from expecta.circuits.vtree import Vtree
from expecta.common.checks import check_integer, check_number
from expecta.densities.density_learner import DensityLearner, LearningOutcome, LearningTask
from expecta.densities.tree_densities import ChowLiu
from expecta.learn.information import mutual_information
from expecta.learn.psdd import learn_psdd
from expecta.learn.vtrees import balanced_by_information
from expecta.learn.weighted_rows import WeightedRows
from expecta.tables import Encoder


class PSDD(DensityLearner):
    """A probabilistic sentential decision diagram: a deterministic circuit.

    The most probable completion and the entropy are exact. Grown greedily, in the manner
    of LearnPSDD (Liang, Bekker, Van den Broeck 2017) and Strudel (Dang, Vergari, Van den
    Broeck 2020): operations that bring most likelihood per added parameter come first,
    until the held-out score stops rising. On tables of few rows it often
    fits better than a latent tree, on wide ones worse.

    Parameters
    ----------
    start
        "chow-liu": grow the circuit of the Chow-Liu tree. "independent": grow the product
        of the columns, over ``vtree``.
    vtree
        For ``start="independent"``: "bottom-up" or "top-down", balanced by mutual
        information. Or a :class:`~expecta.Vtree` over the columns, which is then used
        whatever ``start`` says: the Chow-Liu tree has one of its own.
    pseudo_count
        Rows added to each distribution of the start; copies are pulled towards what
        they are copies of.
    max_parameters, max_seconds
        Bounds on the size of the circuit and on the time of the search.
    patience
        Looks at the held-out rows, one for every 3 % of growth, without a better score.
    encoder
        How to read tables; by default ``Encoder()``.
    random_state
        Chooses the held-out rows.

    Examples
    --------
    >>> rows = {"rain": ["yes", "no"] * 50, "wet": ["yes", "no"] * 50}
    >>> density = PSDD(random_state=0).fit(rows)
    >>> density.mpe({"rain": ["yes"], "wet": [None]})["wet"].tolist()
    ['yes']
    """

    def __init__(
        self,
        *,
        start: str = "chow-liu",
        vtree: str | Vtree = "bottom-up",
        pseudo_count: float = 1.0,
        max_parameters: int | None = None,
        max_seconds: float | None = None,
        patience: int = 8,
        encoder: Encoder | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.start = start
        self.vtree = vtree
        self.pseudo_count = pseudo_count
        self.max_parameters = max_parameters
        self.max_seconds = max_seconds
        self.patience = patience
        self.encoder = encoder
        self.random_state = random_state

    def _learn(self, task: LearningTask) -> LearningOutcome:
        rows, valid, rng, report = task[:4]
        max_edges, seconds = self.max_parameters, self.max_seconds
        learned = learn_psdd(
            self._first(rows),
            rows.codes,
            weight=rows.weight,
            valid=valid.codes,
            valid_weight=valid.weight,
            pseudo_count=check_number("pseudo_count", self.pseudo_count),
            max_edges=None if max_edges is None else check_integer("max_parameters", max_edges, 1),
            max_seconds=None if seconds is None else check_number("max_seconds", seconds),
            patience=check_integer("patience", self.patience, 1),
            seed=int(rng.integers(2**31)),
            report=lambda _, edges, score: report(score, f"with {edges:,} parameters"),
        )
        self.circuit_ = learned.circuit
        score = np.average(self.circuit_.log_prob(valid.codes), weights=valid.weight)
        start = "independent" if isinstance(self.vtree, Vtree) else self.start
        return LearningOutcome(f"grown from {start}", float(score))

    def _first(self, rows: WeightedRows) -> ProbabilisticCircuit:
        """Return the circuit to grow."""
        if self.start not in ("chow-liu", "independent"):
            raise ValueError(f"start is 'chow-liu' or 'independent', not {self.start!r}")
        if self.start == "chow-liu" and not isinstance(self.vtree, Vtree):
            # the start must allow every row; its parameters are fitted anew
            return ChowLiu(pseudo_count=1.0).of_rows(rows, self.encoder_)
        vtree = self.vtree
        if not isinstance(vtree, Vtree):
            if vtree not in ("bottom-up", "top-down"):
                raise ValueError(f"vtree is 'bottom-up', 'top-down' or a Vtree, not {vtree!r}")
            information = mutual_information(rows.codes, self.encoder_.cardinalities_, rows.weight)
            vtree = balanced_by_information(information, vtree)
        return independent(vtree, self._marginals())
