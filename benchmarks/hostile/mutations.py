"""Damage files of every kind, and read them."""

from __future__ import annotations

import atexit
import importlib.util
import json
import re
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

from expecta import (
    FormatError,
    ProbabilisticCircuit,
    RegressionCircuit,
    Vtree,
    random_probabilistic,
    random_regression,
)

ROOT = Path(__file__).parents[2]
USED_SHARE = 0.1  # of the files that can be read: asked all that they answer
ODD_NUMBERS = (0, 1, -1, 2, 7, 255, 256, 2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, 10**30)
ODD_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-320, 1e300, -1e300, np.inf, -np.inf, np.nan)
ODD_TEXTS = ("", "x", "PSDD", "Density", "identity", "inf", "nan", "UTC", "date", "<U9", "é\0", "é")
ODD_WORDS = (b"-1", b"0", b"9" * 30, b"nan", b"inf", b"1e999", b"-", b"(", b")", b"L", b"D", b"x")
NUMBER = re.compile(rb"-?\d+")


def tests_module(path):
    """Import a module of the tests, which knows how files are made, read and used."""
    sys.path.insert(0, str(ROOT / "tests"))
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / "tests" / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class FileAttack:
    """Mutated files by number."""

    def __init__(self, seed, build):
        self.seed, self.failed = seed, build / "failed"
        self.kinds = tests_module("files/test_hostile_files.py")
        memory = Path("/dev/shm")
        folder = tempfile.mkdtemp(
            prefix="expecta-hostile-", dir=memory if memory.is_dir() else None
        )
        folder = Path(folder)
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        self.path = folder / "file"
        self.own, self.text = {}, {}
        for name, make in self.kinds.MAKERS.items():
            self.kinds.save(name, make(), folder / name)
            self.own[name] = self.kinds.FILES[name] = (folder / name).read_bytes()
        self.vtree = Vtree.balanced(6)
        for seed in range(3):
            p = random_probabilistic(self.vtree, seed=seed)
            g = random_regression(self.vtree, seed=seed, outputs=1 + seed)
            for value, ending in ((self.vtree, "vtree"), (p, "psdd"), (g, "glc"), (g, "circuit")):
                path = folder / f"{seed}.{ending}"
                value.save(path)
                self.text[path.name] = path.read_bytes()

    def __call__(self, case):
        rng = np.random.default_rng([self.seed, case % 2**32])
        is_text = rng.random() < 0.3
        name = str(rng.choice(list(self.text if is_text else self.own)))
        data = self.damaged_text(name, rng) if is_text else self.damaged(name, rng)
        self.path.write_bytes(data)
        try:
            value = self.read_text(name) if is_text else self.read(name, rng)
            if not is_text and rng.random() < USED_SHARE and case >= 0:
                self.kinds.use(value)
                return "read and used"
        except FormatError as refused:
            return "refused" if len(str(refused).splitlines()) == 1 else "refused at length"
        except BaseException:
            self.failed.mkdir(exist_ok=True, parents=True)
            (self.failed / f"files-{self.seed}-{case}-{name}").write_bytes(data)
            raise
        return "read"

    def read(self, name, rng):
        kinds = list(self.kinds.READERS)
        kind = self.kinds.KINDS[name] if rng.random() < 0.95 else str(rng.choice(kinds))
        return self.kinds.READERS[kind](self.path)

    def read_text(self, name):
        if name.endswith("vtree"):
            return Vtree.load(self.path)
        if name.endswith("psdd"):
            return ProbabilisticCircuit.load(self.path, self.vtree)
        return RegressionCircuit.load(self.path, self.vtree)

    # -- damage ---------------------------------------------------------------------------

    def damaged(self, name, rng):
        edits = [self.edited_outside, self.edited_json, self.edited_array, self.mixed]
        how = pick(rng, [flipped, spliced, *edits])
        if how in (flipped, spliced):
            data = self.own[name]
            header = 8 + int.from_bytes(data[:8], "little")
            return how(
                data, rng, header if rng.random() < 0.5 else len(data), list(self.own.values())
            )
        return how(name, rng)

    def edited_outside(self, name, rng):
        """Change numbers and names in the layout's own header, whose length is kept right."""
        data = self.own[name]
        length = int.from_bytes(data[:8], "little")
        header, rest = data[8 : 8 + length], data[8 + length :]
        start = header.index(b'"}', header.index(b"__metadata__")) if rng.random() < 0.7 else 0
        spots = [spot for spot in NUMBER.finditer(header) if spot.start() >= start]
        if not spots:
            return data[:-1]
        for _ in range(rng.integers(1, 3)):
            spot = spots[rng.integers(len(spots))]
            new = b"%d" % ODD_NUMBERS[rng.integers(len(ODD_NUMBERS))]
            header = header[: spot.start()] + new + header[spot.end() :]
            spots = [spot for spot in NUMBER.finditer(header) if spot.start() >= start]
        return len(header).to_bytes(8, "little") + header + rest

    def edited_json(self, name, rng):
        header, arrays = self.kinds.parts(name)
        for _ in range(rng.integers(1, 3)):
            spots = list(self.kinds.positions(header))
            if not spots:
                break
            *path, last = spots[rng.integers(len(spots))]
            node = header
            for step in path:
                node = node[step]
            how = rng.integers(4)
            if how == 0:
                del node[last]
            elif how == 1:
                node[last] = junk(rng)
            elif how == 2:
                other = spots[rng.integers(len(spots))]
                inside = header
                for step in other:
                    inside = inside[step]
                node[last] = json.loads(json.dumps(inside))
            elif isinstance(node, dict):
                node[str(rng.choice(ODD_TEXTS))] = junk(rng)
            else:
                node.append(junk(rng))
        return self.kinds.packed(name, header, arrays)

    def edited_array(self, name, rng):
        header, arrays = self.kinds.parts(name)
        for _ in range(rng.integers(1, 3)):
            key = str(rng.choice(sorted(arrays)))
            values = arrays[key].copy()
            how = rng.integers(7)
            if how <= 1 and values.size:
                whole = values.dtype.kind == "i"
                odd = ODD_NUMBERS[:8] if whole else ODD_FLOATS
                values.flat[rng.integers(values.size)] = odd[rng.integers(len(odd))]
            elif how == 2:
                values = rng.permutation(values)
            elif how == 3:
                values = values[: len(values) - rng.integers(1, 3)]
            elif how == 4:
                values = np.concatenate([values, values[: rng.integers(1, 3)]])
            elif how == 5:
                values = arrays[str(rng.choice(sorted(arrays)))]
            else:
                with np.errstate(all="ignore"):
                    values = (values * rng.choice([-1.0, 0.0, 2.0])).astype(values.dtype)
            arrays[key] = values
        return self.kinds.packed(name, header, arrays)

    def mixed(self, name, rng):
        """Join the header of one file with arrays, or entries, of another."""
        other = str(rng.choice(list(self.own)))
        (header, arrays), (second, more) = self.kinds.parts(name), self.kinds.parts(other)
        if rng.random() < 0.5 and set(header) & set(second):
            key = str(rng.choice(sorted(set(header) & set(second))))
            header[key] = second[key]
            arrays = {k: v for k, v in arrays.items() if not k.startswith(key)}
            arrays |= {k: v for k, v in more.items() if k.startswith(key)}
        else:
            arrays = {k: more.get(k, v) if rng.random() < 0.5 else v for k, v in arrays.items()}
        return self.kinds.packed(name, header, arrays)

    def damaged_text(self, name, rng):
        data = self.text[name]
        others = [text for other, text in self.text.items() if other[1:] == name[1:]]
        for _ in range(rng.integers(1, 4)):
            how = rng.integers(7)
            lines = data.split(b"\n")
            at = int(rng.integers(len(lines)))
            if how == 0:
                data = flipped(data, rng, len(data), others)
            elif how == 1:
                data = spliced(data, rng, len(data), others)
            elif how == 2:
                del lines[at]
            elif how == 3:
                lines.insert(int(rng.integers(len(lines) + 1)), lines[at])
            elif how == 4:
                other = int(rng.integers(len(lines)))
                lines[at], lines[other] = lines[other], lines[at]
            else:
                words = lines[at].split(b" ")
                spot = int(rng.integers(len(words)))
                pool = ODD_WORDS if rng.random() < 0.5 else data.split()
                words[spot] = pool[rng.integers(len(pool))] if pool else b""
                lines[at] = b" ".join(words)
            if how >= 2:
                data = b"\n".join(lines)
        return data


def pick(rng, options):
    """Return one of several options."""
    return options[rng.integers(len(options))]


def flipped(data, rng, length, _):
    """Flip some bits."""
    changed = bytearray(data)
    for _ in range(rng.integers(1, 9)):
        if changed:
            changed[rng.integers(min(length, len(changed)))] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def spliced(data, rng, length, others):
    """Cut a file off, take a piece out, put random bytes, or a piece of a file, in."""
    at = int(rng.integers(length)) if length else 0
    size = int(min(rng.integers(1, 1 << int(rng.integers(1, 12))), len(data)))
    how = rng.integers(4)
    if how == 0:
        return data[:at]
    if how == 1:
        return data[:at] + data[at + size :]
    if how == 2:
        return data[:at] + rng.bytes(size) + data[at:]
    other = others[rng.integers(len(others))]
    start = int(rng.integers(len(other)))
    return data[:at] + other[start : start + size] + data[at + size * int(rng.integers(2)) :]


def junk(rng, depth=3):
    """Return a value that JSON holds."""
    how = rng.integers(8 if depth else 5)
    if how == 0:
        return [None, True, False][rng.integers(3)]
    if how == 1:
        return ODD_NUMBERS[rng.integers(len(ODD_NUMBERS))]
    if how in (2, 3):
        return ODD_FLOATS[rng.integers(len(ODD_FLOATS))]
    if how == 4:
        return str(rng.choice(ODD_TEXTS)) * int(rng.choice([1, 1, 1, 70_000]))
    if how == 5:
        return [junk(rng, depth - 1) for _ in range(rng.integers(4))]
    if how == 6:
        tag = str(rng.choice(["date", "datetime", "duration", "float", "map", "x"]))
        return {tag: junk(rng, depth - 1)}
    return {str(rng.choice(ODD_TEXTS)): junk(rng, depth - 1) for _ in range(rng.integers(3))}
