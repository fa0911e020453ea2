"""Files of circuits: damaged and hostile ones give a FormatError or a valid circuit."""

import re
import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from expecta import (
    ProbabilisticCircuit,
    RegressionCircuit,
    Vtree,
    random_probabilistic,
    random_regression,
)
from expecta.common.errors import FormatError
from expecta.files import load, save
from expecta.files.circuit_files import PAIR
from expecta.files.container import Container
from expecta.files.glc_text import format_glc, parse_glc
from expecta.files.psdd_text import format_psdd, parse_psdd
from expecta.files.schema import Kind
from expecta.files.text_lines import Text
from expecta.files.vtree_text import format_vtree, parse_vtree

TREE = Vtree.from_nested((0, (1, 2)))  # ids 0 .. 4 from left to right
ONE = Vtree.from_nested(0)
PAIR_FILE = Kind("pair", PAIR)

VTREE = "vtree 5\nL 0 1\nL 2 2\nL 4 3\nI 3 2 4\nI 1 0 3\n"
PSDD = (
    "psdd 7\nL 0 0 1\nL 1 0 -1\nT 2 2 2 -0.5\nL 3 4 3\nD 4 3 1 2 3 0.0\n"
    "D 5 3 1 2 3 0\nD 6 1 2 0 4 -0.7 1 5 -0.7\n"
)
GLC = (
    "Logistic Circuit\nT 0 0 1 1 2\nF 1 0 1 3 4\nT 2 2 2 5 6\nF 3 4 3 7 8\n"
    "D 4 3 1 (2 3 .1 .2)\nD 5 1 2 (0 4 1 1) (1 4 2 2)\nB 0.5 0.5\n"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("hostile")


def read(folder, kind, data, vtree=TREE):
    path = folder / "file"
    path.write_bytes(data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass"))
    if kind == "vtree":
        return Vtree.load(path)
    if kind == "psdd":
        return ProbabilisticCircuit.load(path, vtree)
    if kind == "glc":
        return RegressionCircuit.load(path, vtree)
    return load("pair", path)


def again(kind, found, vtree=TREE):
    """What was read, written and read once more, without touching the disk."""
    if kind == "vtree":
        return parse_vtree(Text.of("again", format_vtree(found).encode()))
    if kind == "psdd":
        return parse_psdd(Text.of("again", format_psdd(found).encode()), vtree)
    if kind == "glc":
        return parse_glc(Text.of("again", format_glc(found).encode()), vtree)
    return PAIR_FILE.from_bytes("again", PAIR_FILE.to_bytes(found))


def survives(folder, kind, data, vtree=TREE):
    """Either a FormatError, or something valid that survives a round trip."""
    try:
        found = read(folder, kind, data, vtree)
    except FormatError:
        return False
    assert again(kind, found, vtree) == found
    return True


def test_the_examples_are_valid(folder):
    for kind, text in (("vtree", VTREE), ("psdd", PSDD), ("glc", GLC)):
        assert survives(folder, kind, text)


# -- one by one -----------------------------------------------------------------------

BAD_NUMBERS = ["1_0", "+5", "0x1", "٣", "²", "1.0", "-1", "1e0", "", "9" * 20, "9" * 5_000, "½"]


def edits(good, *changes):
    """Replace one piece of a good file at a time: ``(old, new, line)``."""
    for old, new, line in changes:
        assert old in good
        yield good.replace(old, new, 1), line


BAD = {
    "vtree": [
        *edits(
            VTREE,
            *[("L 2 2", f"L {bad} 2", 3) for bad in BAD_NUMBERS],
            *[("L 2 2", f"L 2 {bad}", 3) for bad in BAD_NUMBERS],
            *[("vtree 5", f"vtree {bad}", 1) for bad in [*BAD_NUMBERS, "4", "6", "5 5"]],
            ("vtree 5", "Vtree 5", 1),
            ("vtree 5\n", "", 1),
            ("L 2 2", "L 0 2", 3),  # an id twice
            ("L 2 2", "L 2 1", 3),  # a variable twice
            ("L 2 2", "L 2 0", 3),
            ("L 2 2", "L 2 4", 3),
            ("L 2 2", "L 2", 3),
            ("L 2 2", "L", 3),
            ("L 2 2", "L 2 2 2", 3),
            ("L 2 2", "X 2 2", 3),
            ("I 3 2 4", "I 3 2 2", 5),
            ("I 3 2 4", "I 3 2 3", 5),
            ("I 3 2 4", "I 3 2 1", 5),  # a child after its parent
            ("I 3 2 4", "I 3 2 77", 5),
            ("I 1 0 3", "I 1 0 2", 6),  # a second parent
            ("I 1 0 3\n", "L 9 3\n", 6),
        ),
        ("vtree 1\nL 0 1\nL 1 2\n", 1),
        ("vtree 2\nL 0 1\nL 1 1\n", 3),
        ("vtree 3\nL 0 1\nL 1 2\nL 2 3\n", 4),
        ("vtree 0\n", 1),
    ],
    "psdd": [
        *edits(
            PSDD,
            *[("L 0 0 1", f"L {bad} 0 1", 2) for bad in BAD_NUMBERS],
            *[("L 0 0 1", f"L 0 {bad} 1", 2) for bad in BAD_NUMBERS],
            *[("L 0 0 1", f"L 0 0 {bad}", 2) for bad in BAD_NUMBERS if bad != "-1"],
            *[("T 2 2 2", f"T 2 2 {bad}", 4) for bad in BAD_NUMBERS],
            *[("D 4 3 1 2 3", f"D 4 3 1 {bad} 3", 6) for bad in BAD_NUMBERS],
            *[("D 4 3 1", f"D 4 3 {bad}", 6) for bad in [*BAD_NUMBERS, "0", "2", "9" * 12]],
            *[
                (f" {old}\n", f" {bad}\n", line)
                for old, line in (("-0.5", 4), ("0.0", 6))
                for bad in (
                    "nan",
                    "inf",
                    "Infinity",
                    "1e999",
                    "1e-8",
                    "0.1",
                    "x",
                    "0x1p1",
                    "1_0",
                    "",
                    "-0.5 0",
                    "٣",
                    "-" + "1" * 500,
                    "(1)",
                    "--1",
                )
            ],
            ("psdd 7", "psdd 8", 1),
            ("psdd 7", "psdd", 1),
            ("psdd 7", "sdd 7", 1),
            ("psdd 7\n", "", 1),
            ("L 1 0 -1", "L 0 0 -1", 3),
            ("L 1 0 -1", "L 1 0 0", 3),
            ("L 1 0 -1", "L 1 0 -0", 3),
            ("L 1 0 -1", "L 1 0 --1", 3),
            ("L 1 0 -1", "L 1 0 -2", 3),
            ("L 1 0 -1", "L 1 1 -1", 3),  # a literal at an inner vtree node
            ("L 1 0 -1", "L 1 9 -1", 3),
            ("L 1 0 -1", "L 1 0 -1 1", 3),
            ("L 1 0 -1", "L 1 0", 3),
            ("L 1 0 -1", "M 1 0 -1", 3),
            ("L 1 0 -1", "L 1 0 -1 \0", 3),
            ("D 4 3 1 2 3 0.0", "D 4 3 1 3 2 0.0", 6),  # prime and sub exchanged
            ("D 4 3 1 2 3 0.0", "D 4 2 1 2 3 0.0", 6),  # at a leaf
            ("D 4 3 1 2 3 0.0", "D 4 3 1 2 4 0.0", 6),  # itself
            ("D 4 3 1 2 3 0.0", "D 4 3 1 2 5 0.0", 6),  # a later node
            ("D 4 3 1 2 3 0.0", "D 4 3 1 2 99 0.0", 6),
            ("D 4 3 1 2 3 0.0", "D 4 3 1 2 3 -inf", 6),
            ("D 4 3 1 2 3 0.0", "D 4 3 1 2 3", 6),
            ("D 6 1 2 0 4 -0.7 1 5 -0.7", "D 6 3 1 2 3 0", 8),  # the root is not at the top
            ("D 6 1 2 0 4 -0.7 1 5 -0.7", "garbage", 8),
        ),
        ("psdd 1\nL 0 0 1\n", 2),
        ("psdd 0\n", 1),
        ("psdd 3\nL 0 0 1\nD 1 3 1 0 0 0\nL 2 0 1\n", 3),
    ],
    "glc": [
        *edits(
            GLC,
            *[("T 0 0 1", f"T {bad} 0 1", 2) for bad in BAD_NUMBERS],
            *[("T 0 0 1", f"T 0 {bad} 1", 2) for bad in BAD_NUMBERS],
            *[("T 0 0 1", f"T 0 0 {bad}", 2) for bad in [*BAD_NUMBERS, "0", "2"]],
            *[("D 4 3 1", f"D 4 3 {bad}", 6) for bad in [*BAD_NUMBERS, "0", "2", "9" * 12]],
            *[("(2 3", f"({bad} 3", 6) for bad in BAD_NUMBERS],
            *[
                (old, bad, line)
                for old, line in (("3 4\n", 3), (".1 .2)\n", 6))
                for bad in ("3 nan\n", "3 inf\n", "1e999 1\n", "3\n", "3 4 5\n", "3 x\n", "3 1_0\n")
            ],
            *[
                ("0.5 0.5\n", bad, 8)
                for bad in ("", "nan 1\n", "1 -inf\n", "x\n", "1" * 500 + "\n")
            ],
            ("0.5 0.5\n", "0.5\n", 2),  # the first line that B's count disagrees with
            ("0.5 0.5\n", "1 2 3\n", 2),
            ("B 0.5 0.5\n", "", 7),
            ("B 0.5 0.5\n", "B 0.5\n0.5\n", 9),
            ("B 0.5 0.5\n", "B 0.5 0.5\nB 0.5 0.5\n", 8),
            ("B 0.5 0.5\n", "B 0.5 0.5\nT 9 0 1 1 2\n", 9),
            ("B 0.5 0.5\n", "B 0.5 0.5\ngarbage\n", 9),
            ("Logistic Circuit\n", "", 1),
            ("Logistic Circuit", "Logistic", 1),
            ("Logistic Circuit", "Logistic Circuit 2", 1),
            ("Logistic Circuit", "logistic circuit", 1),
            ("F 1 0", "T 0 0", 3),
            ("F 1 0", "F 1 3", 3),
            ("F 1 0", "X 1 0", 3),
            ("(2 3 .1 .2)", "(3 2 .1 .2)", 6),
            ("(2 3 .1 .2)", "(2 5 .1 .2)", 6),
            ("(2 3 .1 .2)", "(2 4 .1 .2)", 6),
            ("(2 3 .1 .2)", "(2 99 .1 .2)", 6),
            ("(2 3 .1 .2)", "2 3 .1 .2", 6),
            ("(2 3 .1 .2)", "(2 3 .1 .2", 6),
            ("(2 3 .1 .2)", "(2 3 .1 .2))", 6),
            ("(2 3 .1 .2)", "((2 3 .1 .2)", 6),
            ("(2 3 .1 .2)", "(2 3 .1 .2) 5", 6),
            ("(2 3 .1 .2)", "()", 6),
            ("(2 3 .1 .2)", "", 6),
            ("D 4 3 1 (", "D 4 2 1 (", 6),
            ("D 4 3 1 (", "D 4 3 (", 6),
            ("D 5 1 2 (0 4 1 1) (1 4 2 2)", "D 5 3 1 (2 3 1 1)", 7),
        ),
        ("Regression Circuit\n", 1),
        ("Regression Circuit\nB 1\n", 2),
        ("Regression Circuit\nT 0 0 1 1\nB 1\n", 3),
    ],
}
CASES = [(kind, text, line) for kind, cases in BAD.items() for text, line in cases]


@pytest.mark.parametrize(
    ("kind", "text", "line"), CASES, ids=[f"{kind}-{i}" for i, (kind, _, _) in enumerate(CASES)]
)
def test_a_bad_line_is_named(folder, kind, text, line):
    with pytest.raises(FormatError) as caught:
        read(folder, kind, text)
    assert caught.value.line == line
    assert caught.value.path.endswith("file")
    assert 10 < len(caught.value.problem) < 300
    assert f"line {line}: " in str(caught.value)


@pytest.mark.parametrize("kind", ["vtree", "psdd", "glc", "pair"])
@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"", None),
        (b"\n\n \n", None),
        (b"c only a comment\n", None),
        (b"\0", 1),
        (b"c\n\0\0\0\0\0\0\0\0", 2),
        (b"c\n\n\xff\xfe\n", 3),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", None),
        (b"c caf\xe9\n", 1),
    ],
)
def test_what_is_no_text(folder, kind, data, line):
    with pytest.raises(FormatError) as caught:
        read(folder, kind, data)
    if line is not None:
        assert caught.value.line == line


def test_comments_may_hold_any_text(folder):
    assert read(folder, "vtree", "\ufeffc café ٣ 1_0\n" + VTREE + "c the end\n") == TREE


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Regression Circuit\nT 0 0 1 1\nT 1 0 1 1\nB 1\n", 3),
        ("Regression Circuit\nT 0 0 1 1\nD 1 0 1 (0 0 1)\nB 1\n", 3),
        ("Regression Circuit\nT 0 0 2 1\nB 1\n", 2),
        ("Regression Circuit\nB 1\n", 2),
    ],
)
def test_bad_lines_over_one_variable(folder, text, line):
    with pytest.raises(FormatError) as caught:
        read(folder, "glc", text, ONE)
    assert caught.value.line == line


def test_every_truncation(folder):
    for kind, text in (("vtree", VTREE), ("psdd", PSDD), ("glc", GLC)):
        for end in range(len(text)):
            survives(folder, kind, text[:end])


def altered(**changes):
    """The file of a pair with some arrays replaced."""
    p = random_probabilistic(TREE, (2, 3, 2), seed=0, units=2)
    g = random_regression(TREE, (2, 3, 2), seed=0, units=2, outputs=2)
    container = Container.from_bytes("pair", PAIR_FILE.to_bytes((p, g)))
    arrays = {name.replace("__", "."): array for name, array in changes.items()}
    return Container("pair", container.header, {**container.arrays, **arrays}).to_bytes()


# -- numbers in a file do not become memory -------------------------------------------


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("vtree", VTREE.replace("vtree 5", "vtree 999999999999")),
        ("vtree", VTREE.replace("L 2 2", "L 2 999999999999")),
        ("vtree", VTREE.replace("L 2 2", "L 999999999999 2").replace("I 3 2", "I 3 999999999999")),
        ("psdd", PSDD.replace("psdd 7", "psdd 999999999999")),
        ("psdd", PSDD.replace("D 4 3 1 2", "D 4 3 999999999999 2")),
        ("psdd", PSDD.replace("L 0 0 1", "L 999999999999 0 1")),
        ("psdd", PSDD.replace("L 0 0 1", "L 0 999999999999 1")),
        ("psdd", PSDD.replace("L 0 0 1", "L 0 0 999999999999")),
        ("glc", GLC.replace("D 4 3 1 (2", "D 4 3 999999999999 (2")),
        ("glc", GLC.replace("T 0 0 1", "T 0 0 999999999999")),
        ("pair", (10**15).to_bytes(8, "little") + b"{" + b" " * 50),
        ("pair", altered(p__cardinalities=np.int32([2, 3, 2**20]))),
        ("pair", altered(p__node_start=np.array([0, *[2**39] * 5]))),
        ("pair", altered(p__edge_start=np.arange(9) * 10**9)),
    ],
)
def test_memory_does_not_follow_the_numbers(folder, kind, data):
    TREE.inorder  # noqa: B018 - computed once, and not what is measured
    tracemalloc.start()
    start = time.perf_counter()
    try:
        survives(folder, kind, data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2_000_000
    assert time.perf_counter() - start < 2.0


# -- made-up files --------------------------------------------------------------------

WORDS = [
    *"LTDIFBc",
    *map(str, range(8)),
    *["-1", "-2", "-3", "0.0", "-0.5", "-inf", "1e999", "nan", "1_0", "+5", "0x1", "٣", "(", ")"],
    *["(0 1 0.5)", "(2", "0.5)", "psdd", "vtree", "Regression", "Circuit", "999999999999", "\t"],
]
LINE = st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join)
HEADERS = {"vtree": "vtree {}", "psdd": "psdd {}", "glc": "Regression Circuit"}
quick = settings(
    deadline=None,
    max_examples=300,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@quick
@given(kind=st.sampled_from(list(HEADERS)), lines=st.lists(LINE, max_size=8), honest=st.booleans())
def test_lines_of_any_words(folder, kind, lines, honest):
    count = sum(1 for line in lines if line.strip() and not line.strip().startswith("c"))
    header = HEADERS[kind].format(count) if honest else HEADERS[kind].format(7)
    for vtree in (TREE, ONE):
        survives(folder, kind, "\n".join([header, *lines]), vtree)


@st.composite
def nearly_right(draw):
    """Lines of the right shape, whose numbers are right more often than not."""
    kind = draw(st.sampled_from(list(HEADERS)))
    small = st.integers(0, 5)
    weight = st.sampled_from(["0", "-0.5", "-inf", "-1e-300", "-7e2"])
    lines = []
    for name in range(draw(st.integers(1, 9))):
        child = st.integers(0, max(0, name - 1))
        if kind == "vtree":
            inner = f"I {name} {draw(child)} {draw(child)}"
            lines.append(draw(st.sampled_from([inner, f"L {name} {draw(small)}"])))
            continue
        leaf = draw(st.integers(0, 2))
        place = f"{name} {2 * leaf} "
        above = f"{name} {draw(st.sampled_from([1, 3]))}"
        if kind == "psdd":
            elements = draw(st.lists(st.tuples(child, child, weight), min_size=1, max_size=3))
            inside = " ".join(f"{a} {b} {w}" for a, b, w in elements)
            lines.append(
                draw(
                    st.sampled_from(
                        [
                            f"L {place}{leaf + 1}",
                            f"L {place}-{leaf + 1}",
                            f"T {place}{leaf + 1} {draw(weight)}",
                            f"D {above} {len(elements)} {inside}",
                            f"D {above} {len(elements)} {inside}",
                        ]
                    )
                )
            )
        else:
            elements = draw(st.lists(st.tuples(child, child), min_size=1, max_size=3))
            inside = " ".join(f"({a} {b} 0.25)" for a, b in elements)
            lines.append(
                draw(
                    st.sampled_from(
                        [
                            f"T {place}{leaf + 1} 1.5",
                            f"F {place}{leaf + 1} -2",
                            f"D {above} {len(elements)} {inside}",
                        ]
                    )
                )
            )
    if kind == "glc":
        lines.append("B 1")
    return kind, "\n".join([HEADERS[kind].format(len(lines)), *lines])


@quick
@given(nearly_right())
def test_lines_that_are_nearly_right(folder, case):
    kind, text = case
    survives(folder, kind, text)


@quick
@given(st.binary(max_size=200))
def test_any_bytes(folder, data):
    for kind in ("vtree", "psdd", "glc", "pair"):
        survives(folder, kind, data)


# -- mutations ------------------------------------------------------------------------

EXTREME = [b"0", b"-0", b"-1", b"1", b"2", b"999999999999", b"9223372036854775807", b"1e308"]
EXTREME += [b"18446744073709551616", b"-1e308", b"1e-320", b"nan", b"inf", b"-inf", b"1_0", b""]
EXTREME += [b"9" * 600, b"0x10", "٣".encode(), b"+1", b"1e-10", b"-1e-10", b"00", b"5e-324"]


def mutate_lines(data, rng):
    lines = data.split(b"\n")
    i, j = (int(k) for k in rng.integers(len(lines), size=2))
    choice = rng.integers(5)
    if choice == 0:
        rng.shuffle(lines)
    elif choice == 1:
        lines.insert(i, lines[j])
    elif choice == 2:
        del lines[i]
    elif choice == 3:
        lines[i], lines[j] = lines[j], lines[i]
    else:  # exchange a word of one line for a word of another
        words, others = lines[i].split(b" "), lines[j].split(b" ")
        words[int(rng.integers(len(words)))] = others[int(rng.integers(len(others)))]
        lines[i] = b" ".join(words)
    return b"\n".join(lines)


def mutate_number(data, rng):
    found = list(re.finditer(rb"-?[0-9][0-9.e+-]*", data))
    if not found:
        return data
    at = found[int(rng.integers(len(found)))]
    new = EXTREME[int(rng.integers(len(EXTREME)))]
    if rng.random() < 0.5:  # or a near miss
        new = str(int(rng.integers(12))).encode()
    return data[: at.start()] + new + data[at.end() :]


def mutate_bytes(data, rng):
    a = int(rng.integers(len(data) + 1))
    b = min(len(data), a + int(rng.integers(1, 40)))
    choice = rng.integers(6)
    if choice == 0 and a < len(data):
        return data[:a] + bytes([data[a] ^ (1 << int(rng.integers(8)))]) + data[a + 1 :]
    if choice == 1:
        return data[:a] + data[b:]
    if choice == 2:
        return data[:b] + data[a:]
    if choice == 3:
        return data[:a]
    if choice == 4:
        return data[:a] + rng.bytes(int(rng.integers(1, 9))) + data[b:]
    c = int(rng.integers(len(data) + 1))
    return data[:c] + data[a:b] + data[c:]


def mutate_word(data, rng):
    """Replace a word of a binary file by an extreme or small integer, in place."""
    width = int(rng.choice([4, 8]))
    a = int(rng.integers(max(1, len(data) - width))) // width * width
    extremes = [0, 1, 2, 3, 5, -1, -2, 2**31 - 1, -(2**31), 2**20]
    if width == 8:
        extremes += [2**63 - 1, -(2**63), 2**40 - 1, 0x7FF0 << 48, -(1 << 52)]
    value = extremes[int(rng.integers(len(extremes)))]
    return data[:a] + value.to_bytes(width, "little", signed=True) + data[a + width :]


def mutant(kind, data, rng):
    if kind == "pair":
        ways = [mutate_bytes, mutate_word, mutate_word]
    else:
        ways = [mutate_lines, mutate_number, mutate_number, mutate_bytes]
    for _ in range(int(rng.integers(1, 4))):
        data = ways[int(rng.integers(len(ways)))](data, rng)
    if kind in ("vtree", "psdd") and rng.random() < 0.7:
        # Let the header tell the truth, so that the mutation is seen by what comes after.
        rows = [line for line in data.split(b"\n") if line.strip() and line.strip()[:1] != b"c"]
        data = re.sub(rb"(?m)^(vtree|psdd) \d+", rb"\1 %d" % (len(rows) - 1), data, count=1)
    return data


def small_files(seed):
    vtree = [Vtree.random(4, seed=seed), Vtree.random(5, seed=seed, balanced=False)][seed % 2]
    p = random_probabilistic(vtree, units=2, seed=seed, deterministic=seed % 3 == 0)
    g = random_regression(vtree, units=2, outputs=1 + seed % 2, seed=seed)
    return vtree, {
        "vtree": format_vtree(vtree).encode(),
        "psdd": format_psdd(p).encode(),
        "glc": format_glc(g).encode(),
        "pair": PAIR_FILE.to_bytes((p, g)),
    }


def bombard(folder, kind, content, vtree, times, seed, *, seconds):
    rng = np.random.default_rng(seed)
    accepted = 0
    for _ in range(times):
        changed = mutant(kind, content, rng)
        start = time.perf_counter()
        accepted += survives(folder, kind, changed, vtree)
        assert time.perf_counter() - start < seconds, "this mutation took too long"
    return accepted


@pytest.mark.parametrize("kind", ["vtree", "psdd", "glc", "pair"])
def test_mutations_of_small_files(folder, kind):
    tracemalloc.start()
    try:
        accepted = 0
        for seed in range(6):
            vtree, files = small_files(seed)
            accepted += bombard(folder, kind, files[kind], vtree, 250, seed, seconds=2.0)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20_000_000
    assert 0 < accepted < 1_500  # both outcomes were seen


def real_file(data, kind, name):
    folder = data / "circuits" / name
    vtree = Vtree.load(folder / f"{name}.vtree")
    if kind != "pair":
        return vtree, (folder / f"{name}.{kind}").read_bytes()
    p = ProbabilisticCircuit.load(folder / f"{name}.psdd", vtree)
    g = RegressionCircuit.load(folder / f"{name}.glc", vtree)
    return vtree, PAIR_FILE.to_bytes((p, g))


FEW = {  # mutations of each file
    "vtree": {"insurance": 200, "mnist": 60},
    "glc": {"insurance": 150, "abalone": 60},
    "psdd": {"mnist": 40, "insurance": 10},
    "pair": {"insurance": 150},
}
MORE = {
    "vtree": {"insurance": 2_000, "mnist": 500},
    "glc": {"insurance": 2_000, "abalone": 500, "mnist": 60},
    "psdd": {"mnist": 400, "abalone": 200, "insurance": 100},
    "pair": {"insurance": 2_000, "mnist": 500},
}


@pytest.mark.parametrize("kind", list(FEW))
@pytest.mark.parametrize("times", [FEW, pytest.param(MORE, marks=pytest.mark.slow)], ids=str)
def test_mutations_of_the_authors_files(folder, data, kind, times):
    for name, number in times[kind].items():
        vtree, content = real_file(data, kind, name)
        bombard(folder, kind, content, vtree, number, 1 + (times is MORE), seconds=10.0)


def test_messages_are_for_people(folder):
    with pytest.raises(FormatError, match=r"file, line 1: the header promises 9 nodes and 5"):
        read(folder, "vtree", VTREE.replace("vtree 5", "vtree 9"))
    with pytest.raises(FormatError, match=r"line 6: node 99 does not appear before its parent"):
        read(folder, "psdd", PSDD.replace("D 4 3 1 2 3", "D 4 3 1 2 99"))
    with pytest.raises(FormatError, match=r"line 6: .*'\(2'"):
        read(folder, "glc", GLC.replace("D 4 3 1 (2 3 .1 .2)", "D 4 3 1 (2"))
    p, g = random_probabilistic(TREE, seed=0), random_regression(TREE, seed=0)
    save("pair", (p, g), folder / "pair")
    with pytest.raises(FormatError, match=r"holds a pair, not a vtree: read it with Pair\.load"):
        Vtree.load(folder / "pair")
