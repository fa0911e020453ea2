"""Load a model from a file, warm it, and answer about it in what JSON holds."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from expecta.ask.outliers import outliers
from expecta.ask.populations import Population
from expecta.ask.printed_answer import plain
from expecta.common.errors import DomainError, ImpossibleEvidenceError
from expecta.common.file_input import read_bytes
from expecta.densities.density import Density
from expecta.densities.density_files import DENSITY_FILE
from expecta.estimators.estimator_files import ESTIMATOR_FILE
from expecta.estimators.expected_estimator import ExpectedEstimator
from expecta.estimators.row_predictions import RowPredictions, predict_rows
from expecta.expected.expected_model import ModelRows
from expecta.expected.expected_output import ExpectedOutput
from expecta.expected.learned_circuit import LearnedCircuit
from expecta.files.container import Container
from expecta.serve.json_rows import JsonRows, has_evidence
from expecta.serve.problems import ProblemError, problem_of
from expecta.tables.record_encoder import RecordEncoder

ANSWERED_BY_DENSITY = ("card", "outliers", "score")


class PredictOptions(NamedTuple):
    """What to add to predictions; see `predict_rows`."""

    std: bool = False
    interval: float | None = None
    quantiles: tuple[float, ...] | None = None
    proba: bool = False
    error: bool = False

    @property
    def is_shared(self) -> bool:
        """Whether rows of several requests may be computed together: no bit depends on the others.

        The last bit of a quantile does, as the library's depends on the other rows of a table.
        """
        return self.interval is None and self.quantiles is None

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `predict_rows`."""
        return {name: value for name, value in self._asdict().items() if name != "error"}


@dataclass(frozen=True)
class FileStamp:
    """What tells that a file was replaced."""

    inode: int
    size: int
    modified_ns: int

    @classmethod
    def of(cls, path: Path) -> FileStamp:
        """Look at a file, without reading it."""
        status = os.stat(path)
        return cls(status.st_ino, status.st_size, status.st_mtime_ns)


class ServedModel:
    """One model of a service, as it was when its file was read.

    Parameters
    ----------
    name
        What requests call it.
    model
        An estimator, or a density.
    version
        What tells it from other models of that name.
    rows
        Whether training rows are kept, for averages beside answers.
    """

    def __init__(self, name: str, model: Any, version: str, *, rows: bool = False) -> None:
        self.name, self.version = name, version
        if isinstance(model, ExpectedEstimator):
            self.model: Any = model if rows else model.without_rows()
            self.density: Density = self.model.expected_model.density
            self.exactness = str(self.model.expected_model.explain_exactness())
            self.target: str | None = self.model.target_name_
            classes = getattr(self.model, "classes_", None)
            self.classes = None if classes is None else [plain(c) for c in classes.tolist()]
        elif isinstance(model, Density):
            self.model, self.density, self.target, self.classes = model, model, None, None
            self.exactness = "Exact, given the density: log-probabilities. Surprise is sampled."
        else:
            raise DomainError(
                f"a service answers for estimators and densities, not {type(model).__name__}"
            )
        self.rows = JsonRows(self.density.encoder_)
        self._records: RecordEncoder | None = None
        if self.predicts and isinstance(self.model.expected_model, LearnedCircuit):
            self._records = RecordEncoder.of(self.density.encoder_)
            self._no_rows = self.model.expected_model.read(self.rows.table([]))

    @classmethod
    def load(cls, name: str, path: Path, *, rows: bool = False) -> ServedModel:
        """Read a file that an estimator, or a density, was saved in."""
        return cls.from_bytes(name, path, read_bytes(path), rows=rows)

    @classmethod
    def from_bytes(cls, name: str, path: Path, data: bytes, *, rows: bool = False) -> ServedModel:
        """Read what such a file holds: model and version are of the same bytes.

        The file may be replaced at any moment, so it is read once.
        """
        version = hashlib.sha256(data).hexdigest()[:16]
        if Container.recognises(data) and Container.from_bytes(str(path), data).kind == "density":
            return cls(name, DENSITY_FILE.from_bytes(str(path), data), version)
        return cls(name, ESTIMATOR_FILE.from_bytes(str(path), data), version, rows=rows)

    @property
    def predicts(self) -> bool:
        """Whether it is an estimator, and not a density alone."""
        return isinstance(self.model, ExpectedEstimator)

    def check_predicts(self) -> None:
        """Refuse to ask a density what it would predict."""
        if not self.predicts:
            raise ProblemError(
                422,
                f"{self.name!r} is a density, which predicts nothing; it answers "
                f"{', '.join(ANSWERED_BY_DENSITY)}",
            )

    def warm(self) -> None:
        """Ask once what requests will ask, so that kernels are compiled and plans made."""
        names = self.rows.names
        unknown: list[Any] = [None] * len(names)
        if not self.predicts:
            self.score(self.rows.table([unknown]))
            return
        options = PredictOptions(std=self.classes is None, proba=self.classes is not None)
        self.predict([unknown], PredictOptions())
        self.predict([unknown], options)
        _ = self.card  # asks for the distribution of the output too

    # -- rows -------------------------------------------------------------------------

    def predict(self, rows: list[list[Any]], options: PredictOptions) -> list[dict[str, Any]]:
        """Predict for rows of cells, in what JSON holds."""
        given: Any
        if self._records is not None and options.is_shared:  # a circuit asks for codes alone
            given = ModelRows(self._no_rows, self._records.codes(rows))
        else:
            given = self.rows.table(rows)
        return json_predictions(predict_rows(self.model, given, **options.arguments()), options)

    def predict_evidence(self, cells: list[Any], options: PredictOptions) -> dict[str, Any]:
        """Predict for a row that has sets or intervals: the mean over that group.

        The numbers are those of ``ask``; intervals and quantiles of y need single values.
        """
        if options.interval is not None or options.quantiles is not None:
            at = next(i for i, cell in enumerate(cells) if isinstance(cell, tuple | list))
            raise ProblemError(
                422,
                f"intervals and quantiles of {self.target} are calibrated for rows of single "
                f"values and unknown cells, and {self.rows.names[at]!r} has a set or an interval",
                column=self.rows.names[at],
            )
        if (options.std and self.classes is not None) or (options.proba and self.classes is None):
            predict_rows(self.model, self.rows.table([]), **options.arguments())  # complains
        facts = dict(zip(self.rows.names, cells, strict=True))
        if self.classes is None:
            mean, error, std = self.describe(self.model.expected_output(), facts)
            row: dict[str, Any] = {"prediction": mean, "error": error}
            return plain(row | ({"std": std} if options.std else {}))
        classes = self.model.classes_.tolist()
        parts = [self.describe(self.model.expected_output(of), facts) for of in classes]
        shares, errors = [part[0] for part in parts], [part[1] for part in parts]
        label = None if np.isnan(shares).any() else classes[int(np.argmax(shares))]
        row = {"prediction": label, "error": float(np.max(errors))}
        labels = [str(one) for one in classes]
        if options.proba:
            row["proba"] = dict(zip(labels, shares, strict=True))
            if options.error:
                row["proba_error"] = dict(zip(labels, errors, strict=True))
        return plain(row)

    @staticmethod
    def describe(subject: ExpectedOutput, facts: Mapping[str, Any]) -> tuple[float, float, float]:
        """Return mean, error and standard deviation of an output over a group, as ``ask`` does."""
        try:
            group = Population.read(subject, facts)
        except ImpossibleEvidenceError:
            return np.nan, np.nan, np.nan
        summary = subject.describe_groups(group.evidence, group.weight[None])
        std = float(np.sqrt(summary.variance[0]))
        return float(summary.mean[0]), float(summary.error[0]), std

    def predict_all(self, rows: list[list[Any]], options: PredictOptions) -> list[dict[str, Any]]:
        """Predict for rows of cells, of which some have sets or intervals."""
        soft = [i for i, cells in enumerate(rows) if has_evidence(cells)]
        if not soft:
            return self.predict(rows, options)
        at = set(soft)
        others = iter(self.predict([row for i, row in enumerate(rows) if i not in at], options))
        answers = []
        for i, cells in enumerate(rows):
            try:
                answers.append(self.predict_evidence(cells, options) if i in at else next(others))
            except Exception as error:
                raise problem_of(error, i) from error
        return answers

    def score(self, table: Any) -> dict[str, Any]:
        """Return the log-probability of rows, in nats. Exact, given the density."""
        return {
            "log_prob": plain(self.model.score_samples(table)),
            "exactness": "Exact, given the learned density.",
        }

    def outliers(self, table: Any) -> dict[str, Any]:
        """Return how unlike the density rows are."""
        return outliers(self.density, table).to_dict()

    # -- the model --------------------------------------------------------------------

    @cached_property
    def card(self) -> dict[str, Any]:
        """What the model is: see `served_card`."""
        from expecta.serve.served_card import served_card

        return served_card(self)

    @cached_property
    def report(self) -> str:
        """A page about the model: see `write_report`."""
        from expecta.report import write_report

        with TemporaryDirectory() as folder:
            path = Path(folder) / "report.html"
            write_report(self.model, path)
            return path.read_text("utf-8")


def json_predictions(predicted: RowPredictions, options: PredictOptions) -> list[dict[str, Any]]:
    """Return predictions as a list of rows; NaN and infinity are None."""
    columns: dict[str, list[Any]] = {
        "prediction": _finite(predicted.prediction),
        "error": predicted.error.tolist(),
    }
    if predicted.impossible.any():
        columns["error"] = plain(np.where(predicted.impossible, np.nan, predicted.error))
    if predicted.std is not None:
        columns["std"] = _finite(predicted.std)
    if predicted.interval is not None:
        columns["interval"] = _finite(predicted.interval)
    if predicted.quantiles is not None:
        levels = [f"{level:g}" for level in predicted.levels]
        rows = _finite(predicted.quantiles)
        columns["quantiles"] = [dict(zip(levels, row, strict=True)) for row in rows]
    if predicted.proba is not None and predicted.proba_error is not None:
        labels = [str(label) for label in predicted.classes or ()]
        shown = [("proba", predicted.proba)]
        shown += [("proba_error", predicted.proba_error)] * options.error
        for name, values in shown:
            columns[name] = [dict(zip(labels, row, strict=True)) for row in _finite(values)]
    names = list(columns)
    return [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _finite(values: Any) -> list[Any]:
    """Return an array as lists, None where a number is not finite."""
    if values.dtype.kind == "f" and np.all(np.isfinite(values)):
        return values.tolist()
    return plain(values)
