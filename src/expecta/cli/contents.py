"""Read a file of any kind, describe its parts, and write them in other formats."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from expecta import Pair, ProbabilisticCircuit, RegressionCircuit, Vtree
from expecta.circuits.drawing import Drawing
from expecta.common.errors import DomainError
from expecta.common.file_input import read_bytes
from expecta.files.container import VERSION, Container
from expecta.tables import Encoder

TEXT = {".vtree": "vtree", ".psdd": "p", ".glc": "g", ".circuit": "g"}
WORDS = {"p": "distribution (p)", "g": "function (g)", "vtree": "vtree"}


@dataclass(frozen=True)
class Contents:
    """What a file holds.

    Attributes
    ----------
    path, kind
        The file, and what it is called.
    vtree, p, g
        What there is of these.
    encoder
        What the variables are to the user, if it is known.
    more
        Further facts to say of it.
    """

    path: Path
    kind: str
    vtree: Vtree
    p: ProbabilisticCircuit | None = None
    g: RegressionCircuit | None = None
    encoder: Encoder | None = None
    more: tuple[tuple[str, Any], ...] = ()

    def described(self) -> dict[str, Any]:
        """Return what to say of the file."""
        is_text = self.kind in ("text vtree", "text circuit")
        description: dict[str, Any] = {
            "file": str(self.path),
            "kind": self.kind,
            "bytes": self.path.stat().st_size,
            "format_version": "text" if is_text else VERSION,
            **dict(self.more),
            "variables": self.vtree.n_variables,
        }
        for name in ("p", "g"):
            circuit = getattr(self, name)
            if circuit is not None:
                description[name] = repr(circuit)
        if self.encoder is not None:
            description["columns"] = [
                {"name": column.name, "kind": column.kind, "values": column.cardinality}
                for column in self.encoder.columns_
            ]
        return description

    def part(self, name: str) -> Any:
        """Return p, g or the vtree; an error where there is none."""
        part = getattr(self, name)
        if part is None:
            present = [WORDS[key] for key in ("p", "g", "vtree") if getattr(self, key) is not None]
            raise DomainError(f"{self.path} has no {WORDS[name]}; it has a {', a '.join(present)}")
        return part

    def drawing(self, part: str) -> Drawing:
        """Draw p, g or the vtree; what else there is where there is no g."""
        if part == "g" and self.g is None:
            part = "p" if self.p is not None else "vtree"
        names = None if self.encoder is None else self.encoder.feature_names_in_.tolist()
        return self.part(part).draw(names)

    def written(self, path: Path, part: str | None) -> list[str]:
        """Write a part by the ending of a name; returns the files, the vtree's among them."""
        by_ending = TEXT.get(path.suffix.lower())
        if by_ending is not None and part not in (None, by_ending):
            raise DomainError(
                f"a {path.suffix} file holds the {WORDS[by_ending]}; leave --part out"
            )
        part = by_ending or part
        if part is None and self.p is not None and self.g is not None:
            Pair(self.p, self.g).save(path)
            return [str(path)]
        if part is None:
            part = "p" if self.p is not None else "g" if self.g is not None else "vtree"
        if by_ending in (None, "vtree"):
            self.part(part).save(path)
            return [str(path)]
        beside = path.with_suffix(".vtree")
        if not beside.exists():
            self.vtree.save(beside)
        elif not _same_nodes(Vtree.load(beside), self.vtree):
            raise DomainError(f"{beside} is not the vtree of {path}; move it away first")
        self.part(part).save(path)
        return [str(path), str(beside)]


def _same_nodes(vtree: Vtree, other: Vtree) -> bool:
    """Whether two vtrees are equal, and so are the ids that circuits name their nodes by."""
    return vtree == other and vtree.ids.tolist() == other.ids.tolist()


def read(path: Path, vtree_file: Path | None = None) -> Contents:
    """Read a file of any kind that Expecta knows."""
    if str(path) == "-" or path.is_fifo():
        given = "standard input" if str(path) == "-" else f"{path}, a pipe"
        raise DomainError(
            f"models and circuits cannot be read from {given}; give the name of a file"
        )
    data = read_bytes(path)
    if not Container.recognises(data):
        return _read_text(path, vtree_file)
    kind = Container.from_bytes(str(path), data).kind
    if kind == "estimator":
        return _read_estimator(path)
    if kind == "density":
        from expecta.densities import Density

        density = Density.load(path)
        circuit = density.circuit
        more = (("density", type(density).__name__),)
        return Contents(path, kind, circuit.vtree, circuit, None, density.encoder_, more)
    if kind == "encoder":
        raise DomainError(f"{path} holds an encoder, which has no circuit; use Encoder.load")
    if kind == "pair":
        pair = Pair.load(path)
        return Contents(path, kind, pair.p.vtree, pair.p, pair.g)
    if kind == "regression circuit":
        g = RegressionCircuit.load(path)
        return Contents(path, kind, g.vtree, None, g)
    if kind == "probabilistic circuit":
        p = ProbabilisticCircuit.load(path)
        return Contents(path, kind, p.vtree, p)
    return Contents(path, kind, Vtree.load(path))


def _read_estimator(path: Path) -> Contents:
    from expecta.cli.models import load
    from expecta.estimators import ExpectedPredictor

    model: Any = load(path)
    rows = model.training_rows_
    more: dict[str, Any] = {
        "model": type(model).__name__,
        "target": model.target_name_,
        "density": type(model.density_).__name__,
        "rows_in_file": rows is not None,
    }
    if isinstance(model, ExpectedPredictor):
        more["wrapped model"] = model.expected_model.name
    else:
        more["splits"] = model.n_splits_
    if model._training_data is not None:
        more["rows"] = len(model._training_data)
    if hasattr(model, "noise_"):
        more["noise"] = model.noise_
    if hasattr(model, "classes_"):
        more["classes"] = [str(label) for label in model.classes_.tolist()]
    p = model.expected_model.density.circuit
    g = getattr(model, "circuit_", None)
    return Contents(path, "estimator", p.vtree, p, g, model.encoder_, tuple(more.items()))


def _read_text(path: Path, vtree_file: Path | None) -> Contents:
    ending = path.suffix.lower()
    if ending not in TEXT:
        raise DomainError(
            f"{path} is not an Expecta file, and does not end in {', '.join(TEXT)}; "
            f"make a model with: expecta fit"
        )
    if ending == ".vtree":
        return Contents(path, "text vtree", Vtree.load(path))
    beside = vtree_file or path.with_suffix(".vtree")
    if not beside.exists():
        raise DomainError(f"{path} belongs to a vtree, and there is no {beside}; use --vtree-file")
    vtree = Vtree.load(beside)
    if ending == ".psdd":
        return Contents(path, "text circuit", vtree, ProbabilisticCircuit.load(path, vtree))
    return Contents(path, "text circuit", vtree, None, RegressionCircuit.load(path, vtree))
