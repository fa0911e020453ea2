"""Define probabilistic circuits: distributions over categorical variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from expecta.circuits.builders import Leaf, SketchedOr, assemble
from expecta.circuits.properties import (
    Properties,
    Verdict,
    determinism,
    normalisation,
    require_normalised,
)
from expecta.circuits.structure import Circuit, Structure
from expecta.circuits.vtree import Vtree
from expecta.common.arrays import Floats, Ints, frozen
from expecta.common.errors import DomainError, ImpossibleEvidenceError, StructureError

if TYPE_CHECKING:
    from expecta.circuits.drawing import Drawing
    from expecta.circuits.evidence import Rows
    from expecta.engine.plan import Plan
    from expecta.queries.density_queries import MostProbable


def log_of(weights: Floats) -> Floats:
    """Take logarithms of probabilities; zero is allowed, less is not."""
    if weights.ndim != 1 or not np.all(weights >= 0):
        raise StructureError("the parameters of a probabilistic circuit are numbers >= 0")
    with np.errstate(divide="ignore"):
        logarithms: Floats = np.log(weights)
    return logarithms


class ProbabilisticCircuit(Circuit):
    """A distribution p over categorical variables (Equation 2 of the paper).

    Smooth and structured-decomposable along a vtree, so that marginals and
    conditionals are exact in time linear in the circuit. Immutable.

    Parameters
    ----------
    structure
        Nodes, elements and edges.
    log_weight
        log θ of each edge; ``-inf`` is probability zero.  # (edges,)

    Examples
    --------
    >>> from expecta import ProbabilisticCircuit, Vtree
    >>> from expecta.circuits import leaf, literal, node
    >>> p = ProbabilisticCircuit.build(
    ...     Vtree.from_nested((0, 1)),
    ...     node((0.3, literal(0, 1), leaf(1, [0.5, 0.5])), (0.7, literal(0, 0), literal(1, 1))),
    ... )
    >>> round(float(np.exp(p.log_prob([[1, -1]])[0])), 12)
    0.3
    """

    def __init__(self, structure: Structure, log_weight: npt.ArrayLike) -> None:
        self.structure = structure
        self.log_weight: Floats = frozen(log_weight, np.float64, 1, "log_weight")
        if len(self.log_weight) != structure.n_edges:
            raise StructureError(
                f"{len(self.log_weight)} weights for a circuit of {structure.n_edges} edges"
            )
        bad = np.isnan(self.log_weight) | (self.log_weight == np.inf)
        if np.any(bad):
            n = int(structure.node_of_edge[np.argmax(bad)])
            raise StructureError(f"{structure.name_of(n)} has a weight that is not a number")
        dead = np.maximum.reduceat(self.log_weight, structure.edge_start[:-1]) == -np.inf
        if np.any(dead):
            raise StructureError(f"{structure.name_of(int(np.argmax(dead)))} has only zero weights")

    @classmethod
    def build(
        cls, vtree: Vtree, root: Leaf | SketchedOr, cardinalities: Sequence[int] | None = None
    ) -> ProbabilisticCircuit:
        """Build a circuit from a formula whose parameters are probabilities.

        Variables have two values, or as many as the formula names, unless
        ``cardinalities`` says otherwise.

        Parameters
        ----------
        vtree
            Which variables are joined where.
        root
            The root, by `node` and `leaf` of `expecta.circuits`.
        cardinalities
            How many values each variable has; two each by default.
        """
        structure, parameters = assemble(vtree, root, cardinalities)
        weights = np.array([1.0 if w is None else w for w in parameters], np.float64)
        return cls(structure, log_of(weights))

    @classmethod
    def load(cls, path: str | PathLike[str], vtree: Vtree | None = None) -> ProbabilisticCircuit:
        """Read a ``.psdd`` file over ``vtree``, or Expecta's own format (no vtree needed).

        Parameters
        ----------
        path
            The file.
        vtree
            That of a text format; other files hold theirs.
        """
        from expecta.files import load

        return load("probabilistic circuit", path, vtree)

    def save(self, path: str | PathLike[str]) -> None:
        """Write a ``.psdd`` file (by that ending), else Expecta's own format. Atomic.

        Parameters
        ----------
        path
            The file.
        """
        from expecta.files import save

        save("probabilistic circuit", self, path)

    def draw(self, names: Sequence[str] | None = None) -> Drawing:
        """Draw the gates and their probabilities."""
        from expecta.circuits.drawing import draw_circuit

        return draw_circuit(self.structure, np.exp(self.log_weight)[:, None], names, silent=1.0)

    # -- what it is -------------------------------------------------------------------

    @cached_property
    def properties(self) -> Properties:
        """The structural properties, decided once."""
        live = self.log_weight > -np.inf
        return Properties(
            deterministic=determinism(self.structure, live),
            normalised=self._normalisation,
        )

    @cached_property
    def _normalisation(self) -> Verdict:
        return normalisation(self.structure, self.log_weight)

    def require_normalised(self) -> None:
        """Raise unless every node's weights sum to one; asks for no other property."""
        require_normalised(self._normalisation)

    def normalised(self) -> ProbabilisticCircuit:
        """Return the same distribution with every node's weights summing to one."""
        return ProbabilisticCircuit(self.structure, _normalise(self.structure, self.log_weight)[0])

    def condition(self, X: Rows) -> ProbabilisticCircuit:
        """Return the distribution given one row of evidence, as a circuit of its own. Exact.

        What has become impossible is left out, so the circuit is no larger. Impossible
        evidence raises: there is no such distribution. Cost: one pass over the circuit.

        Parameters
        ----------
        X
            Rows: a table in which NaN, or -1 among integers, is unknown, or `Evidence`.

        Examples
        --------
        >>> from expecta import Vtree, naive_bayes
        >>> p = naive_bayes(Vtree.balanced(2), 0, [0.5, 0.5], [None, [[0.9, 0.1], [0.2, 0.8]]])
        >>> np.exp(p.condition([[-1, 1]]).log_prob([[1, -1]])).round(9).tolist()
        [0.888888889]
        """
        from expecta.circuits.evidence import as_evidence

        s = self.structure
        evidence = as_evidence(X, s.cardinalities)
        if len(evidence) != 1:
            raise DomainError(f"condition on one row of evidence, not on {len(evidence)}")
        log_weight = self.log_weight.copy()
        variable = s.vtree.variable[s.layer_of_node[s.node_of_edge]]
        for x in range(s.n_variables):
            edges = np.flatnonzero(variable == x)
            log_weight[edges] += log_of(evidence.weights(x)[0])[s.target[edges]]
        log_weight, log_total = _normalise(s, log_weight)
        if log_total == -np.inf:
            raise ImpossibleEvidenceError(
                "the evidence has probability zero, so there is no distribution given it"
            )
        return ProbabilisticCircuit(s, log_weight).merged()

    def merged(self) -> ProbabilisticCircuit:
        """Return the same distribution with equal nodes made one and zero weights dropped.

        Itself where there is nothing to do; made once otherwise.
        """
        return self if self._smaller is None else self._smaller

    @cached_property
    def _smaller(self) -> ProbabilisticCircuit | None:
        """The merged circuit; None where that is this one."""
        structure, edges = self.structure.merged(self.log_weight, self.log_weight > -np.inf)
        if structure is self.structure:
            return None
        return ProbabilisticCircuit(structure, self.log_weight[edges])

    def __reduce__(self) -> tuple[Any, ...]:
        return ProbabilisticCircuit, (self.structure, self.log_weight)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ProbabilisticCircuit):
            return NotImplemented
        return self.structure.same_as(other.structure) and np.array_equal(
            self.log_weight, other.log_weight
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        s = self.structure
        return (
            f"ProbabilisticCircuit({s.n_variables} variables, {s.n_nodes} nodes, "
            f"{s.n_elements} elements, {s.n_edges} parameters)"
        )

    # -- queries ----------------------------------------------------------------------

    @cached_property
    def _plan(self) -> Plan:
        from expecta.engine.plan import Plan

        self.require_normalised()
        return Plan.of(self.merged(), None)

    def log_prob(self, X: Rows, *, given: Rows | None = None) -> Floats:
        """Log-probability of each row, or of each row given another; unknown cells are summed out.

        Exact. For soft evidence it is the logarithm of the expected likelihood.

        Parameters
        ----------
        X
            Rows (NaN, or -1 among integers, is unknown) or :class:`~expecta.Evidence`.
        given
            What is known already, in the same form; one row of either goes with all rows
            of the other.

        Returns
        -------
        array of shape (rows,)
            ``-inf`` where the row is impossible; NaN, with a warning, where ``given`` is.
            Cost: edges x distinct rows, twice with ``given``.

        Examples
        --------
        >>> from expecta import Vtree, naive_bayes
        >>> p = naive_bayes(Vtree.balanced(2), 0, [0.5, 0.5], [None, [[0.9, 0.1], [0.2, 0.8]]])
        >>> np.exp(p.log_prob([[1, -1]], given=[[-1, 1]])).round(9).tolist()
        [0.888888889]
        """
        from expecta.queries.density_queries import conditional_log_prob, log_prob

        if given is None:
            return log_prob(self._plan, X)
        return conditional_log_prob(self._plan, X, given)

    def marginals(self, X: Rows, *, on_impossible: str = "nan") -> list[Floats]:
        """Posterior distribution of every variable given each row. Exact.

        Parameters
        ----------
        X
            Rows: a table in which NaN, or -1 among integers, is unknown, or `Evidence`.
        on_impossible
            ``"nan"``: rows that are impossible under p give NaN and one warning; ``"raise"``: an
            `ImpossibleEvidenceError`.

        Returns
        -------
        list of arrays
            For each variable an array of shape (rows, values) whose rows sum to one.
            Cost: two passes over the circuit per row.
        """
        from expecta.queries.density_queries import marginals

        return marginals(self._plan, X, on_impossible)

    def mpe(self, X: Rows, *, on_impossible: str = "nan") -> MostProbable:
        """Most probable completion of each row.

        Exact for a deterministic circuit. For others the answer is the max-product
        approximation and says so: ``exact`` is false, and ``log_prob`` is still the
        true log-probability of the row it found, hence a lower bound.

        Parameters
        ----------
        X
            Rows: a table in which NaN, or -1 among integers, is unknown, or `Evidence`.
        on_impossible
            ``"nan"``: rows that are impossible under p give NaN and one warning; ``"raise"``: an
            `ImpossibleEvidenceError`.

        Returns
        -------
        MostProbable
            ``x`` (rows, variables), ``log_prob`` (rows,) and ``exact``. An impossible row
            has x = -1 and log_prob NaN. Cost: two passes over the circuit per row.
        """
        from expecta.queries.density_queries import mpe

        return mpe(self._plan, X, self.properties.deterministic.holds, on_impossible)

    def sample(self, n: int | None = None, *, given: Rows | None = None, seed: Any = None) -> Ints:
        """Draw complete rows: ``n`` from p, or ``n`` for each row of ``given`` from p given it.

        Parameters
        ----------
        n
            How many rows; with ``given`` by default one for each of its rows.
        given
            Rows or evidence to complete.
        seed
            Seed, or a generator of random numbers.

        Returns
        -------
        array of shape (n, variables), or (rows, n, variables) with evidence; without
        ``n`` a single draw: (variables,) or (rows, variables). Exact draws; the same
        seed gives the same rows on any number of threads. Impossible evidence raises:
        there is nothing to draw.
        """
        from expecta.queries.density_queries import sample

        return sample(self._plan, n, given, seed)

    def sample_at(self, n: int, given: Rows, numbers: Callable[[int, int], Floats]) -> Ints:
        """Draw ``n`` rows for each row of ``given`` by numbers of one's own.

        The same numbers make the same choices, so that quasi-random points may take the place of
        random numbers.

        Parameters
        ----------
        n
            How many rows are drawn for each row of evidence.
        given
            Rows of values, -1 where unknown, or evidence.
        numbers
            ``numbers(a, b)`` returns numbers in [0, 1) for the draws a to b, counted through all
            rows: one per vtree node.  # (b - a, vtree nodes)

        Returns
        -------
        array of shape (rows · n, variables)
            The draws of the first row, then those of the second, and so on. Cost: a pass over the
            circuit's edges for each row, and per draw the vtree.
        """
        from expecta.queries.density_queries import sample_at

        return sample_at(self._plan, n, given, numbers)

    def entropy(self, X: Rows | None = None, *, on_impossible: str = "nan") -> float | Floats:
        """Entropy in nats of p, or of p given each row. Exact; needs a deterministic circuit.

        Parameters
        ----------
        X
            Rows or evidence that is known; None for nothing.
        on_impossible
            ``"nan"``: rows that are impossible under p give NaN and one warning; ``"raise"``: an
            `ImpossibleEvidenceError`.

        Returns
        -------
        float or array
            In nats; one number per row of X.
        """
        from expecta.queries.density_queries import entropy

        self.properties.require_deterministic("entropy")
        return entropy(self._plan, X, on_impossible)


def _normalise(s: Structure, log_weight: Floats) -> tuple[Floats, float]:
    """Make every node's weights sum to one; returns them and the logarithm of the whole.

    A node whose weights are all zero keeps weights that do not matter: every edge that
    leads to it has weight zero. In logarithms, and not by the engine's passes: those rely
    on probabilities of at most one, and here nothing is normalised yet.
    """
    log_weight = log_weight.copy()
    log_total = np.zeros(s.n_nodes)
    for v in range(len(s.vtree)):
        nodes = slice(s.node_start[v], s.node_start[v + 1])
        starts = s.edge_start[s.node_start[v] : s.node_start[v + 1]]
        edges = slice(starts[0], s.edge_start[s.node_start[v + 1]])
        if s.vtree.variable[v] < 0:
            target = s.target[edges]
            log_weight[edges] += log_total[s.left[target]] + log_total[s.right[target]]
        log_total[nodes] = np.logaddexp.reduceat(log_weight[edges], starts - starts[0])
        total = log_total[s.node_of_edge[edges]]
        log_weight[edges] = np.where(
            total > -np.inf, log_weight[edges] - np.where(total > -np.inf, total, 0.0), 0.0
        )
    return log_weight, float(log_total[-1])
