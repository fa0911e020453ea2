"""Turn a table of any columns into a table of categorical variables, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from os import PathLike
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from expecta.circuits.evidence import Evidence
from expecta.common.arrays import Floats, Ints
from expecta.common.errors import DomainError
from expecta.common.settings import current
from expecta.common.text import suggestion
from expecta.common.threads import run_on_threads
from expecta.tables.column import CodeColumn, Column, Interval, MissingIsValueColumn, as_codes
from expecta.tables.column_fitting import fit_codes, fit_column, fit_column_sketch
from expecta.tables.column_notes import ColumnNotes
from expecta.tables.encoder_options import EncoderOptions
from expecta.tables.estimator_inputs import read_weights
from expecta.tables.number_column import NumberColumn
from expecta.tables.row_reader import with_all_columns
from expecta.tables.table import Table, TableTransformer, check_size, find_columns, read_table
from expecta.tables.table_sketch import TableSketch
from expecta.tables.write_table import write_table

MIN_THREADED_CELLS = 1 << 18  # of a table below which threads cost more than they bring


class Encoder(TableTransformer):
    """Turn every column of a table into one variable with the values 0, 1, 2, ...

    Categories and Booleans are values as they are, numbers and times are put into bins, and
    missing cells are unknown (-1). The meaning of the values is stored, so that answers are in
    the user's units. A table is a pandas, polars or Arrow frame, a dict of columns, or a
    two-dimensional array; the same columns give the same values in any of these forms.

    **An array of integers** (a NumPy array or list of rows whose type is integer or
    Boolean) holds the values 0, 1, 2, ... themselves, and -1 is unknown. Integers in a frame
    or a dict are numbers.

    Numbers are 64-bit floats underneath, and times microseconds in such a float.

    Parameters
    ----------
    max_bins
        Maximum number of bins per column, not counting those that thresholds add. By default
        twice the cube root of the number of known values, between 8 and 32: with few rows,
        many bins would hide the dependence between columns.
    bins
        How to bin numbers: "quantile" (bins of about equal weight; a value as frequent as a bin
        gets a bin of its own, and up to ``max_bins`` distinct numbers all do), "tails" (the
        same, with up to three more bins at each long end, where there are enough rows), "width"
        (bins of equal width), "adaptive" (an irregular histogram by penalised likelihood, after
        Rozenholc, Mildenberger and Gather 2010; ten bins of equal width where that is a single
        bin), or all edges in increasing order, with the outer two. Or a mapping from columns to
        one of these; columns that it does not name have "quantile". A bin is
        ``low <= x < high``, and numbers beyond the outer edges belong to the end bins.
    max_categories
        Maximum number of values for a column of categories: if there are more, the most
        frequent are kept and the last value is "other". A category that is not in the training
        data is then "other" too. A column with a distinct category in nearly every row (an
        identifier) is "other" throughout. By default one for every 25 rows, between 64 and 256.
    categorical, numeric, dates, durations
        Names of columns to read as a given kind: codes as categories, texts as numbers, dates or
        durations. ``dates`` may be a mapping from columns to formats of ``strptime``, such as
        ``{"sold": "%d/%m/%Y"}``; without one, dates are in ISO format, or whole numbers such as
        20240531.
    na
        Texts and numbers that mean missing, in training data and in new rows: ["?", -999].
    decimal
        The decimal sign of numbers that are texts: "." or ",".
    thresholds
        A mapping from columns to numbers t such that ``x <= t`` and ``x > t`` never share a
        bin, exact to the last bit: the edge is the next float after t.
    unseen
        How to treat a category that is not in the training data, where there is no "other":
        "unknown" treats it as missing, "error" raises a DomainError. Also for integers of arrays.
    missing_is_value
        Names of columns in which "missing" is one more value, the last: for missing values that
        carry information about other columns, such as a test that was not considered necessary.

    Attributes
    ----------
    feature_names_in_, n_features_in_
        The columns; those of arrays are called x0, x1, ...
    cardinalities_
        Number of values of each variable.
    columns_
        The columns, a list of `Column`.
    notes_
        Sentences about unusual columns: constant, empty, an identifier.

    Examples
    --------
    >>> table = {"age": [31, 54, None, 31], "smoker": ["no", "yes", "no", None]}
    >>> encoder = Encoder().fit(table)
    >>> encoder.transform(table).tolist()
    [[0, 0], [1, 1], [-1, 0], [0, -1]]
    >>> encoder.columns_[0].labels, encoder.columns_[1].labels
    (('31', '54'), ('no', 'yes'))
    >>> encoder.where(age=(18, 40)).weights(0).tolist()
    [[1.0, 0.0]]
    """

    elsewhere: Mapping[str, str] = MappingProxyType({})  # what to say of names that are not inputs

    def __init__(
        self,
        *,
        max_bins: int | None = None,
        bins: str | Sequence[Any] | npt.NDArray[Any] | Mapping[str, Any] = "quantile",
        max_categories: int | None = None,
        categorical: Sequence[str] | None = None,
        numeric: Sequence[str] | None = None,
        dates: Sequence[str] | Mapping[str, str | None] | None = None,
        durations: Sequence[str] | None = None,
        na: Sequence[Any] | None = None,
        decimal: str = ".",
        thresholds: Mapping[str, Any] | None = None,
        unseen: str = "unknown",
        missing_is_value: Sequence[str] | None = None,
    ) -> None:
        self.max_bins = max_bins
        self.bins = bins
        self.max_categories = max_categories
        self.categorical = categorical
        self.numeric = numeric
        self.dates = dates
        self.durations = durations
        self.na = na
        self.decimal = decimal
        self.thresholds = thresholds
        self.unseen = unseen
        self.missing_is_value = missing_is_value

    # -- from a table to values -------------------------------------------------------

    def fit(self, X: Any, y: object = None, sample_weight: npt.ArrayLike | None = None) -> Encoder:
        """Learn the values of every column; rows count as much as their weight.

        Parameters
        ----------
        X
            A table: a frame, a mapping of columns, rows or an array; missing values are unknown.
        y
            Ignored.
        sample_weight
            How much each row counts.  # (rows,)

        Returns
        -------
        self
            The same, which has learned.
        """
        options = EncoderOptions.from_params(self.get_params(deep=False))
        table = options.cells.read(read_table(X))
        check_size(table)
        options.check_names(table.names)
        weight = None if sample_weight is None else read_weights(sample_weight, table.n_rows)
        if weight is not None and not np.any(weight > 0):
            raise DomainError("all weights are zero, so there is nothing to learn from")
        notes = ColumnNotes()
        codes = fit_codes(table, options, weight) if table.source == "codes" else {}
        columns = [
            codes.get(name) or fit_column(table.column(position), options, weight, notes)
            for position, name in enumerate(table.names)
        ]
        for position, name in enumerate(table.names):
            if name in options.missing_is_value and name in codes:
                raise ValueError(
                    f"missing_is_value names the column {name!r} of an integer array, whose "
                    f"values are codes; pass a frame, or give missing values a separate code"
                )
            if name in options.missing_is_value:
                missing = ~table.column(position).known
                total = float(np.sum(missing if weight is None else weight[missing]))
                columns[position] = MissingIsValueColumn.from_known(columns[position], total)
        self._set(table.source, columns, notes.sentences())
        return self

    def sketch(self, X: Any, sample_weight: npt.ArrayLike | None = None) -> TableSketch:
        """Summarise a chunk of rows; summaries add up, and `fit_sketch` learns from their sum.

        Memory: at most some megabytes for each column, however many rows.

        Parameters
        ----------
        X
            A table: a frame, a mapping of columns, rows or an array; missing values are unknown.
        sample_weight
            How much each row counts.  # (rows,)

        Returns
        -------
        TableSketch
            Adds up with ``+``.
        """
        options = EncoderOptions.from_params(self.get_params(deep=False))
        table = options.cells.read(read_table(X))
        weight = None if sample_weight is None else read_weights(sample_weight, table.n_rows)
        return TableSketch.of(table, options, weight)

    def fit_sketch(self, sketch: TableSketch) -> Encoder:
        """Learn the values of every column from summaries of chunks; see :meth:`sketch`.

        What is learned is what :meth:`fit` learns from all rows, to rounding, where no column has
        more than 65,536 distinct values. Else the share of rows on each side of an edge, and that
        of a category, is off by at most ``sketch.errors()`` of the column. It is the same however
        the rows are divided over chunks.

        Parameters
        ----------
        sketch
            The sum of summaries of all chunks.

        Returns
        -------
        self
            The same, which has learned.
        """
        options = EncoderOptions.from_params(self.get_params(deep=False))
        names = [column.name for column in sketch.columns]
        if not sketch.rows or not names:
            raise DomainError(f"the table has {sketch.rows} rows and {len(names)} columns")
        options.check_names(names)
        notes = ColumnNotes()
        columns = [fit_column_sketch(column, options, notes) for column in sketch.columns]
        for position, column in enumerate(sketch.columns):
            if column.name in options.missing_is_value:
                known = columns[position]
                columns[position] = MissingIsValueColumn.from_known(known, column.missing)
        self._set(sketch.source, columns, notes.sentences())
        return self

    def read(self, X: Any) -> Table:
        """Read a table by the options on cells: missing values, decimal signs, formats of dates.

        What :meth:`fit` and :meth:`transform` do first.

        Parameters
        ----------
        X
            A table: a frame, a mapping of columns, rows or an array; missing values are unknown.

        Returns
        -------
        Table
            Cells by column.
        """
        table = read_table(X)
        if not (self.na or self.dates or self.numeric or self.decimal != "."):
            return table
        learned = getattr(self, "columns_", ())
        numeric = [c.name for c in learned if c.plain.kind in ("integer", "number")]
        options = EncoderOptions.from_params(self.get_params(deep=False))
        return options.cells.read(table, numeric)

    def transform(self, X: Any) -> Ints:
        """Return the values of a table's cells, -1 where unknown.  # (rows, variables) int32.

        Columns of frames, dicts and records are found by name, those of arrays by position. One
        row may be a mapping to values or a pandas Series. A column that is absent is unknown, with
        a `MissingColumnsWarning`; further columns are ignored, unless one looks like a column that
        is absent: then it is taken for a misspelt name, and refused.

        Parameters
        ----------
        X
            A table: a frame, a mapping of columns, rows or an array; missing values are unknown.
        """
        return self.codes(X)

    def codes(self, X: Any) -> Ints:
        """Return what :meth:`transform` does, whatever scikit-learn's ``set_output`` says.

        Parameters
        ----------
        X
            A table: a frame, a mapping of columns, rows or an array; missing values are unknown.
        """
        check_is_fitted(self, "columns_")
        table = with_all_columns(self.read(X), self.feature_names_in_.tolist())
        positions = find_columns(table, self)
        array = table.array
        plain = array is not None and array.dtype.kind in "iubf" and type(array) is np.ndarray
        if plain and all(isinstance(column, CodeColumn) for column in self.columns_):
            names = self.feature_names_in_.tolist()
            return as_codes(array, self.cardinalities_, names, self.unseen)
        out = np.empty((table.n_rows, len(positions)), np.int32)

        def write(variable: int) -> None:
            cells = table.column(positions[variable])
            out[:, variable] = self.columns_[variable].encode(cells, unseen=self.unseen)

        threads = current().n_threads() if out.size >= MIN_THREADED_CELLS else 1
        run_on_threads(write, [(variable,) for variable in range(len(positions))], threads)
        return out

    def evidence(self, X: Any) -> Evidence:
        """Return what a table says of each variable, row by row.

        Parameters
        ----------
        X
            A table: a frame, a mapping of columns, rows or an array; missing values are unknown.
        """
        return Evidence.rows(self.codes(X), self.cardinalities_)

    def where(self, facts: Mapping[str, Any] | None = None, /, **more: Any) -> Evidence:
        """Return one row of evidence from facts about columns, by name.

        A fact is a value; a list or set of values (for categories a tuple too); for numbers
        and times an interval ``(low, high)``, both ends included and None for an open end;
        or None for unknown (for missing, in a column of ``missing_is_value``). A number stands
        for the whole bin that it falls in. A bin that an interval cuts gets its share as a
        weight, its numbers taken to lie between the least and the largest of training with
        their mean and spread (a beta distribution). An interval that contains nothing is impossible
        evidence: all weights are zero. Dates may be ISO texts.

        Parameters
        ----------
        facts
            A mapping from columns to facts.
        **more
            Further facts, by column.

        Examples
        --------
        >>> encoder = Encoder().fit({"age": [31, 54, 60], "region": ["north", "south", "east"]})
        >>> evidence = encoder.where(age=(None, 54), region=["north", "east"])
        >>> evidence.weights(0).tolist(), evidence.weights(1).tolist()
        ([[1.0, 1.0, 0.0]], [[1.0, 1.0, 0.0]])
        """
        check_is_fitted(self, "columns_")
        evidence = Evidence.unknown(self.cardinalities_)
        for name, fact in {**(facts or {}), **more}.items():
            variable = self.variable(name)
            weights = self.columns_[variable].weights(fact)
            if weights is not None:
                evidence = evidence.likelihood(variable, weights)
        return evidence

    def narrowed(self, facts: Mapping[str, Any]) -> Encoder:
        """Return an encoder that decodes numbers within the intervals of facts; see `where`."""
        columns = list(self.columns_)
        for name, fact in facts.items():
            variable = self.variable(name)
            whole, known = columns[variable], columns[variable].plain
            if not isinstance(known, NumberColumn):
                continue
            parsed = whole.parse_fact(fact)
            if isinstance(parsed, list) and len(parsed) == 1:
                if whole.code(parsed[0]) == known.cardinality:
                    continue  # "missing", which is not a number
                value = known.to_number(parsed[0])
                parsed = Interval(value, value)
            if isinstance(parsed, Interval):
                low, high = parsed
                known = known.narrowed(
                    -np.inf if low is None else low, np.inf if high is None else high
                )
                columns[variable] = known
                if isinstance(whole, MissingIsValueColumn):
                    missing = float(whole.counts[-1])
                    columns[variable] = MissingIsValueColumn.from_known(known, missing)
        narrow: Encoder = copy(self)
        narrow._set(self.source_, columns, self.notes_)
        return narrow

    def variable(self, name: str) -> int:
        """Return the number of the variable that a column became.

        Parameters
        ----------
        name
            The column's name.
        """
        check_is_fitted(self, "columns_")
        name = str(name)
        names = self.feature_names_in_.tolist()
        if name not in names and name in self.elsewhere:
            raise DomainError(self.elsewhere[name])
        if name not in names:
            raise DomainError(f"there is no column {name!r:.80}; {suggestion(name, names)}")
        return int(names.index(name))

    def column(self, name: str) -> Column:
        """Return what is known of a column.

        Parameters
        ----------
        name
            The column's name.
        """
        return self.columns_[self.variable(name)]

    def values(self, name: str) -> Floats:
        """Return the number that each value of a column stands for: the mean of its bin.

        Times are in microseconds, since 1970 where they are dates.

        Parameters
        ----------
        name
            The column's name.
        """
        return self.column(name).numeric()

    # -- from values to a table -------------------------------------------------------

    def inverse_transform(
        self, X: npt.ArrayLike, *, random_state: int | np.random.Generator | None = None
    ) -> Any:
        """Return a table of the fitted kind from values; -1 is missing.

        A bin becomes the mean of the training numbers in it or, with a ``random_state``, a
        random number that has the bin's range, mean and spread. The value "other" becomes its
        label.

        Parameters
        ----------
        X
            Values, -1 for missing.  # (rows, variables)
        random_state
            Seed of numbers drawn within bins; None takes their means.
        """
        check_is_fitted(self, "columns_")
        codes = np.asarray(X)
        if codes.ndim != 2 or codes.shape[1] != len(self.columns_):
            raise DomainError(f"values need {len(self.columns_)} columns, not shape {codes.shape}")
        if codes.dtype.kind not in "iub":
            raise DomainError(f"values are integers, not {codes.dtype}")
        if codes.size and (np.any(codes < -1) or np.any(codes >= self.cardinalities_)):
            raise DomainError("a value is out of range: values are -1 .. cardinality - 1")
        rng = None if random_state is None else np.random.default_rng(random_state)
        return write_table(self.source_, self.columns_, codes.astype(np.int32), rng)

    # -- what scikit-learn and files ask for ------------------------------------------

    def get_feature_names_out(self, input_features: object = None) -> npt.NDArray[np.object_]:
        """Return the names of the columns.

        Parameters
        ----------
        input_features
            Ignored.
        """
        check_is_fitted(self, "columns_")
        return self.feature_names_in_

    def summary(self) -> str:
        """Return a line on every column, and the notes."""
        check_is_fitted(self, "columns_")
        width = max(len(column.name) for column in self.columns_)
        lines = []
        for column in self.columns_:
            labels = [column.labels[i] for i in range(min(column.cardinality, 4))]
            more = ", ..." if column.cardinality > 4 else ""
            lines.append(
                f"{column.name:<{width}}  {column.kind:<8}  {column.cardinality:>5} values  "
                f"{', '.join(labels)}{more}"
            )
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes_)])

    def save(self, path: str | PathLike[str]) -> None:
        """Write all that was learned into one file. Atomic.

        Parameters
        ----------
        path
            The file.
        """
        from expecta.tables.encoder_files import ENCODER_FILE

        check_is_fitted(self, "columns_")
        ENCODER_FILE.save(self, path)

    @staticmethod
    def load(path: str | PathLike[str]) -> Encoder:
        """Read an encoder. Runs no code; a damaged file gives a FormatError.

        Parameters
        ----------
        path
            The file.

        Returns
        -------
        Encoder
            As it was saved.
        """
        from expecta.tables.encoder_files import ENCODER_FILE

        return ENCODER_FILE.load(path)

    def _set(self, source: str, columns: list[Column], notes: list[str]) -> None:
        self.source_ = source
        self.columns_ = columns
        self.notes_ = notes
        self.n_features_in_ = len(columns)
        self.feature_names_in_ = np.array([column.name for column in columns], object)
        self.cardinalities_ = np.array([column.cardinality for column in columns], np.int32)
