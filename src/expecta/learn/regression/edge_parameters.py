"""Fit the parameters of a given structure: ridge or logistic regression on its edges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
import scipy.linalg

from expecta.circuits.regression import RegressionCircuit
from expecta.common.arrays import Floats, Ints, within
from expecta.common.errors import DomainError
from expecta.learn.regression.edge_features import EdgeFeatures, predict
from expecta.learn.regression.losses import LOSSES, Loss
from expecta.learn.regression.newton import Problem, minimise
from expecta.learn.regression.row_features import pair_sums, product

MAX_DENSE = 2000  # parameters up to which conjugate gradients have a dense system to help them
ROUGH_GRADIENT, EXACT_GRADIENT = 1e-5, 1e-7  # of that at zero: to choose a penalty, at the end


def fit_parameters(
    circuit: RegressionCircuit,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    loss: str | None = None,
    valid: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    penalties: Sequence[float] = (0.1, 1.0, 10.0, 100.0),
    sample_weight: npt.ArrayLike | None = None,
    warm: bool = True,
    towards: str = "zero",
) -> RegressionCircuit:
    """Return the circuit with the parameters that fit the rows best.

    The structure stays. Bias b and parameters φ become those of least ::

        Σ_rows weight · loss(y, b + Σ_hot edges φ) + ½ penalty · Σ_edges φ²

    which is convex, every output on its own. A row off the support has no hot edges. With
    ``towards="given"`` it is the square of φ less what it was.

    Parameters
    ----------
    circuit
        Deterministic.
    X
        Values of the variables, all known.  # (rows, variables)
    y
        Targets.  # (rows,) or (rows, outputs)
        For the logistic loss 0 to 1; or, one for each row of a circuit with several
        outputs, the number of the class: each output against the rest.
    loss
        "squared" (half the squared error) or "logistic"; by default what the circuit's
        link says. The link of the result says which it was.
    valid
        Rows and targets held out: the penalty of least mean loss on them is taken, the
        stronger of equals. Without them the first penalty is.
    penalties
        Numbers > 0 to choose from.
    sample_weight
        How much each row counts.  # (rows,)
    warm
        Whether to begin with the circuit's own parameters, or with none. Of no effect on
        the result but for the time that it takes.
    towards
        What parameters shrink to: "zero", or "given", those that the circuit has. Given
        ones know more than their structure: in a circuit that grew by splits, those of the
        parts are near to those of the whole they came from.

    Notes
    -----
    A row has one hot edge in every layer. That of most rows is left out of the system, as
    what the others differ from; the penalty is put in terms of these differences, so that
    the optimum is that of all parameters. It has parameters of sum zero in every layer if
    all rows are on the support, and zero for edges that no row makes hot.

    Cost: two routings of the rows (edges x rows / 64); then two products with the sparse
    features per iteration of conjugate gradients, in which an entry costs 24 bytes and
    2 x outputs multiply-adds. There are at most rows x vtree nodes entries, mostly a third.

    Examples
    --------
    >>> from expecta import Vtree
    >>> from expecta.circuits import linear
    >>> g = linear(Vtree.balanced(2), [[0, 0], [0, 0]])
    >>> X = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> g = fit_parameters(g, X, [1.0, 2.0, 4.0, 5.0], penalties=[1e-9])
    >>> g(X).round(3).tolist(), g.bias.round(3).tolist()
    ([1.0, 2.0, 4.0, 5.0], [3.0])
    """
    circuit.properties.require_deterministic("fitting its parameters")
    name = loss or ("logistic" if circuit.link == "logistic" else "squared")
    if name not in LOSSES:
        raise ValueError(f"loss is one of {', '.join(LOSSES)}, not {loss!r}")
    if towards not in ("zero", "given"):
        raise ValueError(f"towards is 'zero' or 'given', not {towards!r}")
    if not len(penalties) or not all(np.isfinite(p) and p > 0 for p in penalties):
        raise ValueError(f"penalties must be one or more numbers > 0, not {penalties!r}")
    codes, target = _read(circuit, X, y, name)
    weight = np.ones(len(codes)) if sample_weight is None else np.asarray(sample_weight, float)
    if weight.shape != (len(codes),) or not np.all(np.isfinite(weight) & (weight >= 0)):
        raise DomainError(f"sample_weight has a number >= 0 for each of the {len(codes)} rows")
    rows = np.flatnonzero(weight)
    if not len(rows):
        raise DomainError("there is no row to fit the parameters to: X is empty or has no weight")
    edges = EdgeFeatures.of(circuit.structure, codes[rows])
    centre = np.zeros_like(circuit.weight), np.zeros_like(circuit.bias)
    offset: Floats | float = 0.0
    if towards == "given":
        centre = circuit.weight, circuit.bias
        offset = predict(circuit.structure, *centre, codes[rows])
    theta = edges.differences(circuit.weight, circuit.bias)
    if towards == "given" or not warm:
        theta = np.zeros_like(theta)
    fit = partial(_fit, edges, target[rows], weight[rows], LOSSES[name], offset)

    def parameters(theta: Floats) -> tuple[Floats, Floats]:
        weight, bias = edges.parameters(theta)
        return centre[0] + weight, centre[1] + bias

    penalty = penalties[0]
    if valid is not None:
        held_out, targets = _read(circuit, *valid, name)
        if not len(held_out):
            raise DomainError("there are no rows held out: pass valid=None to take penalties[0]")
        tried: list[tuple[float, float, Floats]] = []
        for penalty in sorted(penalties, reverse=True):
            theta = fit(penalty, theta, ROUGH_GRADIENT)
            g = predict(circuit.structure, *parameters(theta), held_out)
            tried.append((float(np.mean(LOSSES[name].value(targets, g))), penalty, theta))
        _, penalty, theta = min(tried, key=lambda trial: trial[0])
    link = "logistic" if name == "logistic" else "identity"
    weight_and_bias = parameters(fit(penalty, theta, EXACT_GRADIENT))
    return RegressionCircuit(circuit.structure, *weight_and_bias, link=link)


def _read(
    circuit: RegressionCircuit, X: npt.ArrayLike, y: npt.ArrayLike, loss: str
) -> tuple[Ints, Floats]:
    """Check rows and targets; targets become one column per output."""
    codes, target = np.asarray(X), np.asarray(y)
    n, k = len(codes), circuit.n_outputs
    if codes.ndim != 2 or codes.shape[1] != circuit.n_variables or codes.dtype.kind not in "iub":
        raise DomainError(
            f"X holds integers and has shape (rows, {circuit.n_variables}), "
            f"not {codes.dtype} of shape {codes.shape}"
        )
    if not within(codes, 0, circuit.cardinalities):
        raise DomainError(
            "X must be complete: values 0, 1, 2, ... below the cardinality of each variable"
        )
    if loss == "logistic" and k > 1 and target.ndim == 1:  # numbers of classes
        if not np.all(np.isin(target, np.arange(k))):
            raise DomainError(f"y holds the numbers of classes, 0 .. {k - 1}, one for each row")
        target = target[:, None] == np.arange(k)
    if target.ndim == 1:
        target = target[:, None]
    if target.shape != (n, k) or target.dtype.kind not in "iubf" or not np.all(np.isfinite(target)):
        raise DomainError(f"y must be finite numbers of shape ({n}, {k}), not {np.shape(y)}")
    target = target.astype(np.float64)
    if loss == "logistic" and not np.all((target >= 0) & (target <= 1)):
        raise DomainError("for the logistic loss y is between 0 and 1")
    return codes, target


def _fit(
    edges: EdgeFeatures,
    y: Floats,
    weight: Floats,
    loss: Loss,
    offset: Floats | float,
    penalty: float,
    theta: Floats,
    tolerance: float,
) -> Floats:
    """Find the differences of least penalised loss, starting from ``theta``."""
    width, ridge_diagonal = edges.by_row.shape[1], penalty * edges.ridge_diagonal()

    def precondition(curvature: Floats) -> Callable[[Floats], Floats]:
        if width <= MAX_DENSE:  # solved exactly for one output, nearly for several
            mean = curvature.mean(axis=1)[:, None]
            gram = pair_sums(edges.by_row, np.arange(len(y)), 0, width, mean)[:, :, 0]
            matrix = gram + penalty * edges.ridge(np.eye(width))
            factor = scipy.linalg.cho_factor(matrix, check_finite=False)
            return lambda theta: scipy.linalg.cho_solve(factor, theta, check_finite=False)
        # features are 0 or 1: so are their squares
        diagonal = product(edges.by_column, curvature) + ridge_diagonal
        return lambda theta: theta / diagonal

    problem = Problem(
        by_row=edges.by_row,
        by_column=edges.by_column,
        y=y,
        weight=weight,
        loss=loss,
        penalty=lambda theta: penalty * edges.ridge(theta),
        precondition=precondition,
        offset=offset,
    )
    return minimise(problem, theta, tolerance=tolerance)
