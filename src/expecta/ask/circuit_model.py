"""Ask circuits that were learned elsewhere about groups, in words."""

from __future__ import annotations

from functools import partial
from typing import Any

from expecta.ask.asking import Asking
from expecta.ask.language.bit_encoder import BitEncoder
from expecta.common.errors import DomainError
from expecta.densities.density import Density
from expecta.expected.expected_output import ExpectedOutput, OutputContext
from expecta.expected.pair_output import PairOutput, one_output
from expecta.expected.sampling import Sampling
from expecta.queries.pair import Pair
from expecta.tables import BooleanEncoder, Encoder
from expecta.tables.estimator_inputs import read_rows


class CircuitModel(Asking):
    """A pair of circuits with names for its variables, to be asked about groups.

    For circuits that were learned elsewhere, such as those of the paper's authors. With the
    paper's one-hot bits (`BooleanEncoder`) ``ask`` and ``compare`` take the columns' own words:
    a column has a value if its bit is set and its others are not. All else is then asked of
    bits, by their names. There are no training rows to count.

    Parameters
    ----------
    pair
        The circuits p and g.
    encoder
        A fitted `Encoder` or `BooleanEncoder` whose variables are those of the circuits.
    name
        What g is.

    Examples
    --------
    >>> from expecta import Pair, Vtree
    >>> from expecta.circuits import independent, linear
    >>> encoder = BooleanEncoder().fit({"smoker": ["no", "yes", "no"]})
    >>> vtree = Vtree.balanced(2)
    >>> p = independent(vtree, [[0.3, 0.7], [0.8, 0.2]])
    >>> pair = Pair(p, linear(vtree, [[0.0, 1.0], [0.0, 10.0]]))
    >>> model = CircuitModel(pair, encoder, "cost")
    >>> model.ask(smoker="yes").mean
    10.0
    """

    def __init__(self, pair: Pair, encoder: Encoder | BooleanEncoder, name: str = "g") -> None:
        if isinstance(encoder, BooleanEncoder):
            encoder = BitEncoder.from_encoder(encoder)
        ours, theirs = encoder.cardinalities_.tolist(), pair.p.cardinalities.tolist()
        if ours != theirs:
            raise DomainError(
                f"the encoder has {len(ours)} variables with {sum(ours)} values, and the circuits "
                f"{len(theirs)} with {sum(theirs)}; pass the encoder that they were learned with"
            )
        self.pair, self.encoder, self.name = pair, encoder, name

    def expected_output(self, of: Any = None) -> ExpectedOutput:
        """Return output number ``of`` of the circuit g, by default the first."""
        index = 0 if of is None else int(of)
        if not 0 <= index < self.pair.g.n_outputs:
            raise DomainError(f"of is the index of an output, 0 .. {self.pair.g.n_outputs - 1}")
        pair = one_output(self.pair, index)
        context = OutputContext(
            self.name,
            None,
            self.encoder,
            pair.p,
            None,
            partial(read_rows, encoder=self.encoder),
            Sampling(scale=0.1),
            "Exact, given the circuits: mean, standard deviation and share. "
            "Quantiles: within their errors.",
        )
        return PairOutput(context, pair, "identity", 1e-9)

    def _asked_density(self) -> Density:
        return Density(self.pair.p, self.encoder)
