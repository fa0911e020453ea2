"""Define regression and logistic circuits: functions of categorical variables."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from expecta.circuits.builders import Leaf, SketchedOr, assemble
from expecta.circuits.properties import Properties, Verdict, determinism
from expecta.circuits.structure import Circuit, Structure
from expecta.circuits.vtree import Vtree
from expecta.common.arrays import Floats, frozen
from expecta.common.errors import StructureError

if TYPE_CHECKING:
    from expecta.circuits.drawing import Drawing
    from expecta.circuits.evidence import Rows
    from expecta.engine.plan import Plan


class RegressionCircuit(Circuit):
    """A function g of categorical variables, with one or many outputs (Equation 3).

    ``g(x)`` is the bias plus the parameters of every wire that ``x`` makes hot. A
    logistic circuit is the same thing with ``link="logistic"``: a note that σ(g) is
    what its author meant, which files keep and queries do not heed. Immutable.

    Parameters
    ----------
    structure
        Nodes, elements and edges.
    weight
        φ of each edge and output.  # (edges, outputs)
    bias
        Added to every prediction.  # (outputs,)
    link
        ``"identity"`` or ``"logistic"``.

    Examples
    --------
    >>> from expecta.circuits import leaf, literal, node
    >>> g = RegressionCircuit.build(
    ...     Vtree.from_nested((0, 1)),
    ...     node((1.0, literal(0, 0), leaf(1, [0, 2])), (5.0, literal(0, 1), leaf(1, [0, 0]))),
    ... )
    >>> g([[0, 1], [1, 1]]).tolist()
    [3.0, 5.0]
    """

    _is_merged = False  # whether it is known that no two nodes are equal

    def __init__(
        self,
        structure: Structure,
        weight: npt.ArrayLike,
        bias: npt.ArrayLike | None = None,
        *,
        link: str = "identity",
    ) -> None:
        self.structure = structure
        table = np.asarray(weight)
        self.weight: Floats = frozen(
            table[:, None] if table.ndim == 1 else table, np.float64, 2, "weight"
        )
        if bias is None:
            bias = np.zeros(self.weight.shape[1])
        self.bias: Floats = frozen(np.atleast_1d(np.asarray(bias)), np.float64, 1, "bias")
        self.link = link
        if self.weight.shape != (structure.n_edges, len(self.bias)) or len(self.bias) == 0:
            raise StructureError(
                f"weights of shape {self.weight.shape} for a circuit of {structure.n_edges} edges "
                f"and {len(self.bias)} outputs"
            )
        if not (np.all(np.isfinite(self.weight)) and np.all(np.isfinite(self.bias))):
            raise StructureError("the parameters of a regression circuit are finite numbers")
        if link not in ("identity", "logistic"):
            raise StructureError(f'link is "identity" or "logistic", not {link!r}')

    @classmethod
    def build(
        cls,
        vtree: Vtree,
        root: Leaf | SketchedOr,
        cardinalities: Sequence[int] | None = None,
        *,
        bias: npt.ArrayLike | None = None,
        link: str = "identity",
    ) -> RegressionCircuit:
        """Build a circuit from a formula whose parameters are numbers, or one per output.

        Parameters
        ----------
        vtree
            Which variables are joined where.
        root
            The root, by `node` and `leaf` of `expecta.circuits`.
        cardinalities
            How many values each variable has; two each by default.
        bias
            Added to every prediction.  # (outputs,)
        link
            ``"identity"`` or ``"logistic"``.
        """
        structure, parameters = assemble(vtree, root, cardinalities)
        given = [np.atleast_1d(np.asarray(w, np.float64)) for w in parameters if w is not None]
        outputs = 1 if bias is None else np.atleast_1d(np.asarray(bias)).size
        outputs = max([outputs, *(len(w) for w in given)])
        if any(len(w) not in (1, outputs) for w in given):
            raise StructureError(f"every parameter has one number, or one for each of {outputs}")
        weight = np.zeros((structure.n_edges, outputs))
        for row, w in zip(weight, parameters, strict=True):
            row[:] = 0.0 if w is None else w
        return cls(structure, weight, np.zeros(outputs) if bias is None else bias, link=link)

    @classmethod
    def load(cls, path: str | PathLike[str], vtree: Vtree | None = None) -> RegressionCircuit:
        """Read a ``.glc``/``.circuit`` file over ``vtree``, or Expecta's own format.

        Parameters
        ----------
        path
            The file.
        vtree
            That of a text format; other files hold theirs.
        """
        from expecta.files import load

        return load("regression circuit", path, vtree)

    def save(self, path: str | PathLike[str]) -> None:
        """Write ``.glc``/``.circuit`` (by that ending), else Expecta's own format. Atomic.

        Parameters
        ----------
        path
            The file.
        """
        from expecta.files import save

        save("regression circuit", self, path)

    def draw(self, names: Sequence[str] | None = None) -> Drawing:
        """Draw the gates and their parameters."""
        from expecta.circuits.drawing import draw_circuit

        return draw_circuit(self.structure, self.weight, names)

    # -- what it is -------------------------------------------------------------------

    @property
    def n_outputs(self) -> int:
        """How many numbers the function returns."""
        return len(self.bias)

    @cached_property
    def properties(self) -> Properties:
        """The structural properties, decided once."""
        every = np.ones(self.structure.n_edges, np.bool_)
        return Properties(
            deterministic=determinism(self.structure, every),
            normalised=Verdict(False, "a regression circuit is not a distribution"),
        )

    @cached_property
    def covers_everything(self) -> bool:
        """Whether every row satisfies g's formula, decided by counting models exactly."""
        s = self.structure
        count = [0] * s.n_nodes
        edges = np.diff(s.edge_start)
        for n in range(s.n_nodes):
            if s.vtree.variable[s.layer_of_node[n]] >= 0:
                count[n] = int(edges[n])
            else:
                targets = s.target[s.edge_start[n] : s.edge_start[n + 1]]
                pairs = zip(s.left[targets], s.right[targets], strict=True)
                count[n] = sum(count[a] * count[b] for a, b in pairs)
        total = 1
        for card in s.cardinalities.tolist():
            total *= card
        return count[s.root] == total

    def merged(self) -> RegressionCircuit:
        """Return the same function with equal nodes made one: itself where none are."""
        if not self._is_merged:
            structure, edges = self.structure.merged(self.weight)
            if structure is not self.structure:
                made = RegressionCircuit(structure, self.weight[edges], self.bias, link=self.link)
                made._is_merged = True
                return made
            self._is_merged = True
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(RegressionCircuit, link=self.link), (self.structure, self.weight, self.bias)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RegressionCircuit):
            return NotImplemented
        return (
            self.structure.same_as(other.structure)
            and np.array_equal(self.weight, other.weight)
            and np.array_equal(self.bias, other.bias)
            and self.link == other.link
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        s = self.structure
        return (
            f"RegressionCircuit({s.n_variables} variables, {s.n_nodes} nodes, "
            f"{s.n_elements} elements, {self.n_outputs} output(s), link={self.link!r})"
        )

    # -- the prediction ---------------------------------------------------------------

    @cached_property
    def _plan(self) -> Plan:
        from expecta.circuits.constructions import counting_measure
        from expecta.engine.plan import Plan

        self.properties.require_deterministic("a regression circuit's prediction")
        return Plan.of(counting_measure(self.vtree, self.cardinalities), self.merged())

    def __call__(self, X: Rows) -> Floats:
        """Predict complete rows: bias plus every hot wire; the bias alone off g's support.

        This is g itself, on the scale of the parameters: for a logistic circuit the
        log-odds, before the link.

        Returns
        -------
        array of shape (rows,), or (rows, outputs) for several outputs.
        """
        from expecta.queries.moments import predict

        return predict(self, self._plan, X)
