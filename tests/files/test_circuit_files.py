"""Files: what is written is read back, and the authors' files mean what they should."""

import decimal
import math
import os

import numpy as np
import pytest
import safetensors.numpy

from expecta import (
    Pair,
    ProbabilisticCircuit,
    RegressionCircuit,
    Vtree,
    random_probabilistic,
    random_regression,
)
from expecta.circuits import leaf, literal, node
from expecta.common.errors import FormatError, StructureError, VtreeMismatchError
from expecta.files import load, save
from expecta.files.container import VERSION
from expecta.files.psdd_text import log_complement

VTREES = [
    Vtree.from_nested(0),
    Vtree.from_nested((1, 0)),
    Vtree.balanced(7),
    Vtree.random(6, seed=1),
    Vtree.random(9, seed=2, balanced=False),
    Vtree.right_linear(5),
    Vtree.left_linear([3, 0, 2, 1]),
]
over_vtrees = pytest.mark.parametrize("vtree", VTREES, ids=repr)


def log_likelihood(p, X):
    """Enumerate bottom-up in the plainest way.  # (rows,)."""
    s = p.structure
    value = np.full((s.n_nodes, len(X)), -np.inf)
    for n in range(s.n_nodes):
        variable = s.vtree.variable[s.layer_of_node[n]]
        for e in range(s.edge_start[n], s.edge_start[n + 1]):
            t = s.target[e]
            if variable >= 0:
                term = np.where(X[:, variable] == t, p.log_weight[e], -np.inf)
            else:
                term = p.log_weight[e] + value[s.left[t]] + value[s.right[t]]
            value[n] = np.logaddexp(value[n], term)
    return value[s.root]


def prediction(g, X):
    """Add up the hot wires, bottom-up.  # (rows, outputs)."""
    s = g.structure
    hot = np.zeros((s.n_nodes, len(X)), bool)
    value = np.zeros((s.n_nodes, len(X), g.n_outputs))
    for n in range(s.n_nodes):
        variable = s.vtree.variable[s.layer_of_node[n]]
        for e in range(s.edge_start[n], s.edge_start[n + 1]):
            t = s.target[e]
            if variable >= 0:
                now, below = X[:, variable] == t, 0.0
            else:
                now = hot[s.left[t]] & hot[s.right[t]]
                below = value[s.left[t]] + value[s.right[t]]
            value[n] += np.where(now[:, None], g.weight[e] + below, 0.0)
            hot[n] |= now
    return g.bias + value[s.root]


def every_row(n):
    return (np.arange(2**n)[:, None] >> np.arange(n)) & 1


def boolean_psdd(vtree, seed):
    """A circuit such as reading a file gives: leaf weights follow from one number."""
    p = random_probabilistic(vtree, seed=seed, deterministic=seed % 2 == 0)
    s = p.structure
    weight = p.log_weight.copy()
    for n in range(s.n_nodes):
        edges = range(s.edge_start[n], s.edge_start[n + 1])
        if s.vtree.variable[s.layer_of_node[n]] >= 0:
            by_value = {int(s.target[e]): e for e in edges}
            weight[by_value.get(1, edges[0])] = -0.5 if len(edges) == 2 else 0.0
            if len(edges) == 2:
                weight[by_value[0]] = log_complement(-0.5)
    return ProbabilisticCircuit(s, weight)


# -- round trips ----------------------------------------------------------------------


@over_vtrees
@pytest.mark.parametrize("name", ["tree.vtree", "tree.VTREE", "tree.safetensors", "tree"])
def test_vtree_round_trip(tmp_path, vtree, name):
    ids = np.random.default_rng(0).permutation(1000)[: len(vtree)]
    vtree = Vtree(vtree.left, vtree.right, vtree.variable, ids)
    vtree.save(tmp_path / name)
    read = Vtree.load(str(tmp_path / name))
    assert read == vtree
    assert np.array_equal(read.ids, vtree.ids)


@over_vtrees
@pytest.mark.parametrize("seed", range(4))
def test_own_probabilistic_round_trip(tmp_path, vtree, seed):
    cards = np.random.default_rng(seed).integers(1, 6, vtree.n_variables)
    p = random_probabilistic(vtree, cards, deterministic=seed % 2 == 0, seed=seed)
    p.save(tmp_path / "p.expecta")
    read = ProbabilisticCircuit.load(tmp_path / "p.expecta")
    assert read == p
    assert ProbabilisticCircuit.load(tmp_path / "p.expecta", vtree).vtree is vtree


@over_vtrees
@pytest.mark.parametrize("seed", range(4))
def test_own_regression_round_trip(tmp_path, vtree, seed):
    cards = np.random.default_rng(seed).integers(1, 6, vtree.n_variables)
    g = random_regression(vtree, cards, outputs=1 + seed, coverage=0.8, seed=seed)
    g = RegressionCircuit(g.structure, g.weight, g.bias, link=["identity", "logistic"][seed % 2])
    g.save(tmp_path / "g.expecta")
    assert RegressionCircuit.load(tmp_path / "g.expecta") == g


@over_vtrees
def test_pair_round_trip(tmp_path, vtree):
    cards = list(range(2, 2 + vtree.n_variables))
    p = random_probabilistic(vtree, cards, seed=1)
    g = random_regression(vtree, cards, outputs=3, seed=2)
    save("pair", (p, g), tmp_path / "pair.expecta")
    again_p, again_g = load("pair", tmp_path / "pair.expecta")
    assert (again_p, again_g) == (p, g)
    assert again_p.vtree is again_g.vtree


@over_vtrees
@pytest.mark.parametrize("seed", range(4))
def test_psdd_round_trip(tmp_path, vtree, seed):
    p = boolean_psdd(vtree, seed)
    p.save(tmp_path / "p.psdd")
    read = ProbabilisticCircuit.load(tmp_path / "p.psdd", vtree)
    rows = every_row(vtree.n_variables)
    assert np.allclose(log_likelihood(read, rows), log_likelihood(p, rows), rtol=1e-13)
    read.save(tmp_path / "q.psdd")
    assert (tmp_path / "q.psdd").read_bytes() == (tmp_path / "p.psdd").read_bytes()
    assert ProbabilisticCircuit.load(tmp_path / "q.psdd", vtree) == read


def test_psdd_round_trip_is_exact_by_hand(tmp_path):
    vtree = Vtree.from_nested(((0, 2), 1))
    both = [(0, log_complement(-0.25)), (1, -0.25)]
    some = leaf(2, [math.exp(w) for _, w in both])
    p = ProbabilisticCircuit.build(
        vtree,
        node(
            (0.25, node((1.0, literal(0, 1), some)), literal(1, 1)),
            (0.75, node((0.5, literal(0, 0), some), (0.5, literal(0, 1), some)), literal(1, 0)),
        ),
    )
    weight = p.log_weight.copy()
    weight[[e for e in range(len(weight)) if abs(weight[e] + 0.25) < 1e-12]] = -0.25
    weight[[e for e in range(len(weight)) if abs(weight[e] - both[0][1]) < 1e-12]] = both[0][1]
    p = ProbabilisticCircuit(p.structure, weight)
    p.save(tmp_path / "p.psdd")
    assert ProbabilisticCircuit.load(tmp_path / "p.psdd", vtree) == p


@over_vtrees
@pytest.mark.parametrize("ending", ["glc", "circuit"])
@pytest.mark.parametrize("seed", range(3))
def test_glc_round_trip(tmp_path, vtree, ending, seed):
    ids = np.random.default_rng(seed).permutation(1000)[: len(vtree)]
    vtree = Vtree(vtree.left, vtree.right, vtree.variable, ids)
    g = random_regression(vtree, outputs=1 + 2 * seed, coverage=0.7, seed=seed)
    g = RegressionCircuit(g.structure, g.weight, g.bias, link=["identity", "logistic"][seed % 2])
    vtree.save(tmp_path / "g.vtree")
    g.save(tmp_path / f"g.{ending}")
    read = RegressionCircuit.load(tmp_path / f"g.{ending}", Vtree.load(tmp_path / "g.vtree"))
    rows = every_row(vtree.n_variables)
    assert read.link == g.link
    assert np.allclose(prediction(read, rows), prediction(g, rows), rtol=1e-12, atol=1e-12)
    read.save(tmp_path / "again.glc")
    assert RegressionCircuit.load(tmp_path / "again.glc", vtree) == read


def test_glc_of_literals_round_trip_is_exact(tmp_path):
    vtree = Vtree.from_nested((1, 0))
    t, f = leaf(1, [None, [0.1, 1 / 3]]), leaf(1, [[1e-300, -2.5], None])
    other = leaf(0, [None, [1e300, 5e-324]])
    g = RegressionCircuit.build(
        vtree, node(([1.0, 2.0], f, other), ([3.0, 4.0], t, other)), bias=[0.7, -0.0]
    )
    g.save(tmp_path / "g.glc")
    assert RegressionCircuit.load(tmp_path / "g.glc", vtree) == g


@pytest.mark.parametrize("values", [[0.5, None], [None, 0.5], [0.5, 0.25]])
def test_glc_over_one_variable_is_the_union_of_its_literals(tmp_path, values):
    vtree = Vtree.from_nested(0)
    g = RegressionCircuit.build(vtree, leaf(0, values), bias=2.0)
    g.save(tmp_path / "g.glc")
    assert RegressionCircuit.load(tmp_path / "g.glc", vtree) == g


def test_the_same_circuit_gives_the_same_bytes(tmp_path):
    vtree = Vtree.balanced(5)
    for name in ("a", "b"):
        pair = random_probabilistic(vtree, seed=3), random_regression(vtree, seed=4)
        save("pair", pair, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_own_files_are_safetensors_files(tmp_path):
    p = random_probabilistic(Vtree.balanced(5), seed=3)
    p.save(tmp_path / "p")
    tensors = safetensors.numpy.load_file(tmp_path / "p")
    assert np.array_equal(tensors["p.log_weight"], p.log_weight)
    with safetensors.safe_open(tmp_path / "p", "numpy") as file:
        assert file.metadata() == {
            "expecta": str(VERSION),
            "kind": "probabilistic circuit",
            "header": "{}",
        }


# -- what the text formats mean -------------------------------------------------------


def read_text(tmp_path, kind, text, vtree=None):
    path = tmp_path / "file"
    path.write_text(text)
    return kind.load(path) if kind is Vtree else kind.load(path, vtree)


def test_vtree_lines_in_any_bottom_up_order(tmp_path):
    text = "c hello\n\nvtree 5\r\nL 7 3\nL 0 1\n L\t9 2 \nI 4 9 7\nc I 1 2 3\nI 2 4 0\n\n"
    vtree = read_text(tmp_path, Vtree, text)
    assert vtree.nested() == ((1, 2), 0)
    assert vtree.ids.tolist() == [9, 7, 4, 0, 2]


def test_psdd_positions_are_in_order_whatever_the_ids(tmp_path):
    vtree = read_text(tmp_path, Vtree, "vtree 3\nL 8 2\nL 5 1\nI 6 8 5\n")
    text = f"psdd 4\nL 3 0 -2\nT 1 2 1 {math.log(0.25)!r}\nL 4 0 2\nD 0 1 2 3 1 -1.5 4 1 -.25\n"
    p = read_text(tmp_path, ProbabilisticCircuit, text, vtree)
    rows = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    expected = [math.log(0.75) - 1.5, math.log(0.75) - 0.25]
    expected += [math.log(0.25) - 1.5, math.log(0.25) - 0.25]
    assert np.allclose(log_likelihood(p, rows), expected, rtol=1e-14)
    s = p.structure
    leaf_edges = s.target[s.edge_at_leaf & (s.layer_of_node[s.node_of_edge] == 1)]
    assert leaf_edges.tolist() == [0, 1]


def test_glc_refers_to_the_ids_of_the_vtree_file(tmp_path):
    vtree = read_text(tmp_path, Vtree, "vtree 3\nL 8 2\nL 5 1\nI 6 8 5\n")
    text = (
        "Logisitic Circuit\nT 0 8 2 1 10\nF 1 8 2 2 20\nF 3 5 1 3 30\n"
        "D 2 6 2 (0 3 100 1e3)( 1\t3 200 2e3 )\nB 0.5 .25\n"
    )
    g = read_text(tmp_path, RegressionCircuit, text, vtree)
    assert g.link == "logistic"
    rows = np.array([[0, 1], [0, 0], [1, 1]])
    assert prediction(g, rows).tolist() == [[104.5, 1040.25], [205.5, 2050.25], [0.5, 0.25]]


def test_unreachable_nodes_are_dropped(tmp_path):
    vtree = Vtree.from_nested((0, 1))
    psdd = "psdd 6\nL 1 0 1\nL 2 2 2\nD 3 1 1 1 2 0\nL 9 0 -1\nD 4 1 1 9 2 0.0\nL 5 2 -2\n"
    p = read_text(tmp_path, ProbabilisticCircuit, psdd, vtree)
    assert p.structure.n_nodes == 3
    assert log_likelihood(p, np.array([[0, 1]])).tolist() == [0.0]
    glc = "Regression Circuit\nT 1 0 1 1\nT 2 2 2 1\nT 3 0 1 5\nD 4 1 1 (1 2 1)\nB 0\n"
    assert read_text(tmp_path, RegressionCircuit, glc, vtree).structure.n_nodes == 3


def test_psdd_over_one_variable_ends_in_its_root(tmp_path):
    vtree = Vtree.from_nested(0)
    p = read_text(tmp_path, ProbabilisticCircuit, "psdd 2\nL 1 0 1\nT 2 0 1 -1.0\n", vtree)
    assert p.structure.target.tolist() == [0, 1]
    p = read_text(tmp_path, ProbabilisticCircuit, "psdd 2\nT 2 0 1 -1.0\nL 1 0 -1\n", vtree)
    assert p.structure.target.tolist() == [0]


@pytest.mark.parametrize("spelling", ["-inf", "-Infinity", "-INF", "-1e999"])
def test_probability_zero_is_allowed(tmp_path, spelling):
    vtree = Vtree.from_nested((0, 1))
    text = f"psdd 4\nT 1 0 1 {spelling}\nT 2 2 2 0.0\nL 3 0 1\nD 4 1 2 1 2 0 3 2 {spelling}\n"
    p = read_text(tmp_path, ProbabilisticCircuit, text, vtree)
    rows = every_row(2)
    assert log_likelihood(p, rows).tolist() == [-np.inf, -np.inf, 0.0, -np.inf]
    p.save(tmp_path / "p.psdd")
    assert ProbabilisticCircuit.load(tmp_path / "p.psdd", vtree) == p


@pytest.mark.parametrize(
    "log_one", [-1e-320, -1e-300, -1e-17, -1e-9, -0.1, -0.6931471805599453, -0.7, -36.0, -740.0]
)
def test_the_other_value_of_a_leaf_is_accurate(log_one):
    with decimal.localcontext(prec=700):
        exact = float((1 - decimal.Decimal(log_one).exp()).ln())
    assert log_complement(log_one) == pytest.approx(exact, rel=4e-16, abs=0.0)


def test_a_leaf_nearly_sure_of_one_keeps_its_small_probability(tmp_path):
    vtree = Vtree.from_nested(0)
    p = ProbabilisticCircuit.build(vtree, leaf(0, [1e-40, 1.0]))
    p.save(tmp_path / "p.psdd")
    read = ProbabilisticCircuit.load(tmp_path / "p.psdd", vtree)
    assert np.allclose(read.log_weight, p.log_weight, rtol=1e-15)


def test_weights_above_one_by_rounding_survive(tmp_path):
    vtree = Vtree.from_nested((0, 1))
    text = "psdd 3\nT 1 0 1 1e-12\nL 2 2 2\nD 4 1 1 1 2 9e-10\n"
    p = read_text(tmp_path, ProbabilisticCircuit, text, vtree)
    p.save(tmp_path / "p.psdd")
    assert ProbabilisticCircuit.load(tmp_path / "p.psdd", vtree) == p
    slack = ProbabilisticCircuit(p.structure, p.log_weight + 5e-9)
    slack.save(tmp_path / "p.psdd")
    read = ProbabilisticCircuit.load(tmp_path / "p.psdd", vtree)
    assert np.allclose(read.log_weight, p.log_weight, atol=1e-8)


# -- what cannot be written or read ---------------------------------------------------


def test_categorical_variables_need_our_own_format(tmp_path):
    vtree = Vtree.balanced(3)
    for circuit, name in (
        (random_probabilistic(vtree, [2, 3, 2], seed=0), "p.psdd"),
        (random_regression(vtree, [2, 3, 2], seed=0), "g.glc"),
        (random_regression(vtree, [2, 1, 2], seed=0), "g.circuit"),
    ):
        with pytest.raises(StructureError, match=r"variable 1 has . value.*own format"):
            circuit.save(tmp_path / name)
    assert os.listdir(tmp_path) == []


def test_unnormalised_weights_are_no_psdd(tmp_path):
    p = random_probabilistic(Vtree.balanced(3), seed=0)
    for shift in (800.0, 0.1):
        q = ProbabilisticCircuit(p.structure, p.log_weight + shift)
        with pytest.raises(StructureError, match="normalised"):
            q.save(tmp_path / "p.psdd")
    inner = np.where(p.structure.edge_at_leaf, 0.0, 10.0)
    with pytest.raises(StructureError, match="normalised"):
        ProbabilisticCircuit(p.structure, p.log_weight + inner).save(tmp_path / "p.psdd")


def test_negative_ids_cannot_be_written(tmp_path):
    tree = Vtree.balanced(2)
    tree = Vtree(tree.left, tree.right, tree.variable, [-1, 0, 1])
    with pytest.raises(StructureError, match="negative"):
        tree.save(tmp_path / "t.vtree")
    with pytest.raises(StructureError, match="negative"):
        random_regression(tree, seed=0).save(tmp_path / "g.glc")


def test_an_ending_that_promises_something_else_is_refused(tmp_path):
    vtree = Vtree.balanced(3)
    p, g = random_probabilistic(vtree, seed=0), random_regression(vtree, seed=0)
    for write in (
        lambda: vtree.save(tmp_path / "x.psdd"),
        lambda: p.save(tmp_path / "x.glc"),
        lambda: g.save(tmp_path / "x.psdd"),
        lambda: save("pair", (p, g), tmp_path / "x.psdd"),
    ):
        with pytest.raises(StructureError, match="choose another ending"):
            write()
    assert os.listdir(tmp_path) == []


def test_text_circuits_need_a_vtree(tmp_path):
    vtree = Vtree.balanced(3)
    for circuit, name in (
        (boolean_psdd(vtree, 0), "x.psdd"),
        (random_regression(vtree, seed=0), "x.glc"),
    ):
        circuit.save(tmp_path / name)
        with pytest.raises(FormatError, match=r"pass vtree=Vtree\.load\(\.\.\.\)"):
            type(circuit).load(tmp_path / name)


def test_the_vtree_of_our_own_file_must_be_the_one_given(tmp_path):
    vtree, other = Vtree.balanced(3), Vtree.right_linear([1, 0, 2])
    for circuit in (random_probabilistic(vtree, seed=0), random_regression(vtree, seed=0)):
        circuit.save(tmp_path / "x")
        with pytest.raises(VtreeMismatchError, match="another vtree"):
            type(circuit).load(tmp_path / "x", other)


def test_a_pair_shares_vtree_and_values(tmp_path):
    p = random_probabilistic(Vtree.balanced(3), seed=0)
    with pytest.raises(VtreeMismatchError):
        save("pair", (p, random_regression(Vtree.right_linear(4), seed=0)), tmp_path / "x")
    g = random_regression(Vtree.balanced(3), [2, 3, 2], seed=0)
    with pytest.raises(StructureError, match="how many values"):
        save("pair", (p, g), tmp_path / "x")


def test_reading_another_text_says_what_it_is(tmp_path):
    vtree = Vtree.balanced(3)
    vtree.save(tmp_path / "x.vtree")
    boolean_psdd(vtree, 0).save(tmp_path / "x.psdd")
    random_regression(vtree, seed=0).save(tmp_path / "x.glc")
    with pytest.raises(FormatError, match="this is a PSDD, not a vtree"):
        Vtree.load(tmp_path / "x.psdd")
    with pytest.raises(FormatError, match="this is a vtree, not a PSDD"):
        ProbabilisticCircuit.load(tmp_path / "x.vtree")
    with pytest.raises(FormatError, match="this is a regression circuit, not a PSDD"):
        ProbabilisticCircuit.load(tmp_path / "x.glc", vtree)
    with pytest.raises(FormatError, match="this is a PSDD, not a logistic or regression circuit"):
        RegressionCircuit.load(tmp_path / "x.psdd", vtree)
    with pytest.raises(FormatError, match="own format"):
        load("pair", tmp_path / "x.psdd")


def test_missing_files_and_folders_are_the_systems_errors(tmp_path):
    for read in (Vtree.load, ProbabilisticCircuit.load, RegressionCircuit.load, Pair.load):
        with pytest.raises(FileNotFoundError):
            read(tmp_path / "nothing")
        with pytest.raises(OSError):  # noqa: PT011 - which one depends on the system
            read(tmp_path)


# -- saving is atomic -----------------------------------------------------------------


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("name", ["t.vtree", "t.expecta"])
def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch, step, failure, name):
    Vtree.balanced(3).save(tmp_path / name)
    old = (tmp_path / name).read_bytes()

    def fail(*_):
        raise failure

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(type(failure)) as caught:
        Vtree.balanced(9).save(tmp_path / name)
    monkeypatch.undo()
    assert (tmp_path / name).read_bytes() == old
    assert os.listdir(tmp_path) == [name]
    if isinstance(failure, OSError):
        assert str(tmp_path / name) in str(caught.value)
        assert ".tmp" not in str(caught.value)


def test_a_save_names_the_file_it_could_not_write(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"t\.vtree'$"):
        Vtree.balanced(3).save(tmp_path / "nowhere" / "t.vtree")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match=r"folder'$"):
        Vtree.balanced(3).save(tmp_path / "folder")
    assert os.listdir(tmp_path) == ["folder"]


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions and links")
def test_a_save_keeps_permissions_and_links(tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("")
    Vtree.balanced(3).save(tmp_path / "new")
    assert (tmp_path / "new").stat().st_mode == plain.stat().st_mode
    plain.chmod(0o640)
    (tmp_path / "link").symlink_to(plain)
    Vtree.balanced(4).save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert plain.stat().st_mode & 0o777 == 0o640
    assert Vtree.load(plain) == Vtree.balanced(4)


# -- the authors' files ---------------------------------------------------------------

SIZES = {  # PSDD nodes and wires, circuit's OR nodes and wires, outputs
    "insurance": (14_341, 15_030, 345, 586, 1),
    "abalone": (9_039, 9_079, 900, 2_219, 1),
    "mnist": (4_903, 2_958, 8_352, 14_818, 10),
}


def authors(data, name) -> tuple[Vtree, ProbabilisticCircuit, RegressionCircuit]:
    folder = data / "circuits" / name
    vtree = Vtree.load(folder / f"{name}.vtree")
    p = ProbabilisticCircuit.load(folder / f"{name}.psdd", vtree)
    return vtree, p, RegressionCircuit.load(folder / f"{name}.glc", vtree)


@pytest.mark.parametrize("name", SIZES)
def test_authors_sizes(data, name):
    _, p, g = authors(data, name)
    nodes, wires, decisions, circuit_wires, outputs = SIZES[name]
    assert p.structure.n_nodes == nodes
    assert np.count_nonzero(~p.structure.edge_at_leaf) == wires
    at_leaf = g.vtree.variable[g.structure.layer_of_node] >= 0
    assert np.count_nonzero(~at_leaf) == decisions
    assert np.count_nonzero(~g.structure.edge_at_leaf) == circuit_wires
    assert g.n_outputs == outputs
    assert g.link == ("logistic" if name == "mnist" else "identity")


@pytest.mark.parametrize("name", SIZES)
def test_authors_round_trip(data, tmp_path, name):
    vtree, p, g = authors(data, name)
    for ending in ("vtree", "expecta"):
        vtree.save(tmp_path / f"v.{ending}")
        read = Vtree.load(tmp_path / f"v.{ending}")
        assert read == vtree
        assert np.array_equal(read.ids, vtree.ids)
    for ending in ("psdd", "expecta"):
        p.save(tmp_path / f"p.{ending}")
        assert ProbabilisticCircuit.load(tmp_path / f"p.{ending}", vtree) == p
    for ending in ("glc", "circuit", "safetensors"):
        g.save(tmp_path / f"g.{ending}")
        assert RegressionCircuit.load(tmp_path / f"g.{ending}", vtree) == g
    save("pair", (p, g), tmp_path / "pair")
    assert load("pair", tmp_path / "pair") == (p, g)


@pytest.mark.parametrize(("name", "expected"), [("insurance", -10.528821), ("abalone", -9.560896)])
def test_authors_likelihood(data, name, expected):
    _, p, _ = authors(data, name)
    with np.load(data / "splits" / f"{name}.npz") as split:
        rows = split["x_valid"]
    assert log_likelihood(p, rows).mean() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("name", SIZES)
def test_authors_predictions(data, name):
    _, _, g = authors(data, name)
    with (
        np.load(data / "splits" / f"{name}.npz") as split,
        np.load(data / "reference" / f"{name}.npz") as reference,
    ):
        expected = reference["complete_g"]
        rows = split["x_test"][: len(expected)]
    found = prediction(g, rows)
    assert np.allclose(found, expected.reshape(found.shape), rtol=1e-9)
