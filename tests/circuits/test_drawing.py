"""Pictures: complete, legible, valid, and saved whole or not at all."""

import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expecta import (
    ProbabilisticCircuit,
    RegressionCircuit,
    Vtree,
    random_probabilistic,
    random_regression,
)
from expecta.circuits import independent, leaf, linear, literal, node
from expecta.circuits.drawing import Drawing, draw_circuit
from expecta.circuits.drawing.labels import colours
from expecta.circuits.drawing.layered_svg import layered_svg
from expecta.common.errors import ExpectaError, StructureError

SVG = "{http://www.w3.org/2000/svg}"
needs_dot = pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")


def positive(variable):
    return literal(variable, 1)


def negative(variable):
    return literal(variable, 0)


@pytest.fixture
def figure_vtree():
    return Vtree.from_nested((0, (1, 2)))


@pytest.fixture
def figure_distribution(figure_vtree):
    """Figure 1(b) of the paper."""
    same = node((0.6, positive(1), positive(2)), (0.4, negative(1), negative(2)))
    free = node((1.0, positive(1), leaf(2, [0.5, 0.5])))
    root = node((0.2, positive(0), same), (0.8, negative(0), free))
    return ProbabilisticCircuit.build(figure_vtree, root)


@pytest.fixture
def figure_function(figure_vtree):
    """Figure 1(c) of the paper."""
    first = node(
        (-5.3, positive(1), positive(2)),
        (2.0, positive(1), negative(2)),
        (6.1, negative(1), leaf(2, [0.5, -0.3])),
    )
    second = node(
        (3.0, positive(1), leaf(2, [2.8, 1.7])),
        (-1.1, negative(1), positive(2)),
        (-4.3, negative(1), negative(2)),
    )
    root = node((-1.6, positive(0), first), (2.1, negative(0), second))
    return RegressionCircuit.build(figure_vtree, root)


def words(drawing):
    """Return all words of a picture that is drawn without Graphviz; tips and title left out."""
    texts = ElementTree.fromstring(layered_svg(drawing.graph)).iter(f"{SVG}text")
    return [element.text for element in texts][1:]


def dot_words(drawing):
    """Return all words of a picture in Graphviz's language; tips, title and signs left out."""
    labels = re.findall(r'\[label="((?:[^"\\]|\\.)*)"', drawing.dot)
    lines = [line for label in labels for line in label.split("\\n")]
    plain = [re.sub(r"\\(.)", r"\1", line).replace("&amp;", "&") for line in lines]
    return [line for line in plain if line not in ("∨", "∧", "")]


@pytest.fixture
def without_dot(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda _: None)


@st.composite
def circuits(draw):
    n = draw(st.integers(1, 8))
    seed = draw(st.integers(0, 10**6))
    cardinalities = draw(st.lists(st.sampled_from([1, 2, 2, 3, 6, 15]), min_size=n, max_size=n))
    vtree = Vtree.random(n, seed=seed, balanced=draw(st.booleans()))
    options = {"units": draw(st.integers(1, 3)), "seed": seed}
    kind = draw(st.sampled_from(["dense", "deterministic", "function"]))
    if kind == "function":
        outputs = draw(st.integers(1, 3))
        return random_regression(vtree, cardinalities, outputs=outputs, **options)
    deterministic = kind == "deterministic"
    return random_probabilistic(vtree, cardinalities, deterministic=deterministic, **options)


# -- what is in the picture ---------------------------------------------------------------


def test_the_distribution_of_figure_1_shows_every_literal_and_probability(figure_distribution):
    drawing = figure_distribution.draw(["X1", "X2", "X3"])
    legend = ["X1", "X2", "X3"]
    literals = ["X1", "¬X1", "X2", "X3", "¬X2", "¬X3", "X2", "X3", "¬X3"]
    probabilities = ["0.2", "0.8", "0.6", "0.4", "1", "0.5", "0.5"]
    assert sorted(words(drawing)) == sorted(legend + literals + probabilities)
    assert sorted(dot_words(drawing)) == sorted(legend + literals + probabilities)


def test_the_function_of_figure_1_shows_every_parameter(figure_function):
    drawing = figure_function.draw()
    shown = [word for word in words(drawing) if "X" not in word]
    expected = [-1.6, 2.1, -5.3, 2, 6.1, 3, -1.1, -4.3, 0.5, -0.3, 2.8, 1.7]
    assert sorted(map(float, shown)) == sorted(expected)


def test_the_picture_in_the_docs_is_the_function_of_figure_1(figure_function):
    drawing = figure_function.draw(["X1", "X2", "X3"])
    path = Path(__file__).parents[2] / "docs" / "figure1.svg"
    assert path.read_text(encoding="utf-8") == layered_svg(drawing.graph)


def test_gates_have_two_shapes_and_the_colours_of_their_vtree_nodes(
    figure_vtree, figure_distribution
):
    drawing = figure_distribution.draw()
    svg = ElementTree.fromstring(layered_svg(drawing.graph))
    fills = [path.get("fill") for path in svg.iter(f"{SVG}path") if "A" in path.get("d")]
    colour = colours(figure_vtree)
    root, below = colour[4], colour[3]
    assert sorted(fills) == sorted([root] * 2 + [below] * 3)
    assert len([path for path in svg.iter(f"{SVG}path") if "Q" in path.get("d")]) == 4
    vtree_svg = ElementTree.fromstring(layered_svg(figure_vtree.draw().graph))
    assert {disc.get("fill") for disc in vtree_svg.iter(f"{SVG}circle")} == {root, below}
    houses = re.findall(r'shape=house.*fillcolor="(.*?)"', drawing.dot)
    assert sorted(houses) == sorted(fills)
    assert drawing.dot.count("shape=ellipse") == 4
    circles = re.findall(r'shape=circle.*fillcolor="(.*?)"', figure_vtree.draw().dot)
    assert set(circles) == {root, below}


def test_every_inner_vtree_node_has_its_own_colour():
    colour = colours(Vtree.balanced(40))
    assert len(set(colour.values())) == 39


def test_categorical_leaves_are_literals_sets_or_tables():
    vtree = Vtree.balanced(4)
    g = linear(vtree, [[1.0, 2.0, 3.0], [0.0, 5.0, 5.0, 5.0, 0.0], [4.0, 4.0, 4.0], range(12)])
    shown = words(g.draw())
    assert {"X0 = 0", "X0 = 1", "X0 = 2"} < set(shown)
    assert {"X1 ∈ {0, 4}", "X1 ∈ {1..3}", "any X2"} < set(shown)
    assert {"X3", "8: 8", "…: 3 more"} < set(shown)
    assert not any(word.startswith("X3 =") for word in shown)


def test_probabilities_of_several_values_stay_apart():
    p = independent(Vtree.balanced(2), [[0.25, 0.25, 0.5], [0.5, 0.5]])
    shown = words(p.draw())
    assert shown.count("0.25") == 2
    assert {"X0 = 0", "X0 = 1", "X0 = 2"} < set(shown)


def test_a_literal_shows_its_parameter_only_where_it_matters():
    vtree = Vtree.balanced(2)
    g = RegressionCircuit.build(vtree, node((2.0, leaf(0, [None, 1.0]), literal(1, 1))))
    assert sorted(words(g.draw())) == sorted(["X0", "X1", "X0", "X1", "2", "1"])
    p = ProbabilisticCircuit.build(vtree, node((1.0, literal(0, 1), literal(1, 1))))
    assert sorted(words(p.draw())) == sorted(["X0", "X1", "X0", "X1", "1"])


@pytest.mark.parametrize(
    ("outputs", "label"), [(1, "1.5"), (2, "1.5, 2.5"), (3, "(3 outputs)"), (9, "(9 outputs)")]
)
def test_several_outputs_are_listed_then_counted(outputs, label):
    weights = (np.arange(outputs) + 1.5).tolist()
    g = RegressionCircuit.build(Vtree.balanced(2), node((weights, literal(0, 1), literal(1, 0))))
    drawing = g.draw()
    assert label in words(drawing)
    assert label in drawing.dot


def test_names_are_escaped_in_both_notations():
    names = ['a<b>&"c"', "back\\slash\x00\nnew  line", "&lt;"]
    drawing = independent(Vtree.balanced(3), [[0.5, 0.5]] * 3).draw(names)
    assert {'a<b>&"c"', "back\\slash\ufffd new line", "&lt;"} < set(words(drawing))
    assert sorted(dot_words(drawing)) == sorted(words(drawing))
    assert '"a<b>&amp;\\"c\\""' in drawing.dot
    assert '"¬(back\\\\slash\ufffd new line)"' in drawing.dot
    assert '"&amp;lt;"' in drawing.dot


def test_unusable_names_are_refused_or_replaced(figure_vtree):
    with pytest.raises(StructureError, match="2 names for 3 variables"):
        figure_vtree.draw(["a", "b"])
    with pytest.raises(StructureError, match="one string for 3 variables"):
        figure_vtree.draw("abc")
    assert words(figure_vtree.draw(["a", " ", "very " * 20])) == [
        "a",
        "X1",
        "very very very very very ve…",
    ]


def test_parameters_of_the_wrong_shape_are_refused(figure_distribution):
    with pytest.raises(StructureError, match="one row for each edge"):
        draw_circuit(figure_distribution.structure, np.zeros((3, 1)))


@pytest.mark.parametrize("with_dot", [False, pytest.param(True, marks=needs_dot)])
@pytest.mark.parametrize("kind", ["vtree", "circuit", "summary"])
def test_pictures_have_a_title_and_an_opaque_ground(
    kind, with_dot, figure_vtree, figure_distribution, monkeypatch
):
    if not with_dot:
        monkeypatch.setattr("shutil.which", lambda _: None)
    large = random_probabilistic(Vtree.balanced(30), units=6, seed=0)
    drawn = {"vtree": figure_vtree, "circuit": figure_distribution, "summary": large}[kind]
    drawing = drawn.draw()
    svg = ElementTree.fromstring(drawing.svg)
    assert svg.get("role") == "img"
    assert svg.get("aria-label") == svg.find(f"{SVG}title").text == drawing.title
    if with_dot:
        assert svg.find(f"{SVG}g/{SVG}polygon").get("fill") == "white"
    else:
        ground = svg.find(f"{SVG}rect")
        assert (ground.get("width"), ground.get("fill")) == (svg.get("width"), "#ffffff")


def test_the_same_circuit_gives_the_same_picture():
    one, other = (random_regression(Vtree.balanced(6), units=3, seed=5).draw() for _ in range(2))
    assert one == other
    assert one.dot == other.dot
    assert one.svg == other.svg


# -- how it is laid out without Graphviz ---------------------------------------------------


@given(circuits())
@settings(max_examples=60, deadline=None)
def test_wires_connect_what_the_circuit_connects(circuit):
    graph = circuit.draw().graph
    s = circuit.structure
    gates = [node for node in graph.nodes if node.shape == "and"]
    reached = {s.root}
    elements = set()
    for n in sorted(range(s.n_nodes), reverse=True):
        if n in reached and s.vtree.variable[s.layer_of_node[n]] < 0:
            for element in s.target[s.edge_start[n] : s.edge_start[n + 1]].tolist():
                elements.add(element)
                reached |= {int(s.left[element]), int(s.right[element])}
    assert len(gates) == len(elements)
    lower = {gate.name: [e for e in graph.edges if e.upper == gate.name] for gate in gates}
    assert all(len(edges) == 2 for edges in lower.values())
    inner = [n for n in reached if s.vtree.variable[s.layer_of_node[n]] < 0]
    wires = [e for e in graph.edges if e.lower in lower]
    assert len(wires) == sum(int(s.edge_start[n + 1] - s.edge_start[n]) for n in inner)


@given(circuits())
@settings(max_examples=30, deadline=None)
def test_wires_go_down_from_row_to_row(circuit):
    graph = circuit.draw().graph
    row = {node.name: node.row for node in graph.nodes}
    for edge in graph.edges:
        beside = edge.upper.startswith("v")  # the legend has a row for each kind of gate
        assert row[edge.lower] - row[edge.upper] in ((1, 2) if beside else (1,))


@given(circuits())
@settings(max_examples=60, deadline=None)
def test_no_words_overlap(circuit):
    drawing = circuit.draw()
    svg = ElementTree.fromstring(layered_svg(drawing.graph))
    width, height = float(svg.get("width")), float(svg.get("height"))
    boxes = []
    for text in svg.iter(f"{SVG}text"):
        size, x, y = (float(text.get(name)) for name in ("font-size", "x", "y"))
        half = 0.25 * size * len(text.text)  # about the width of letters
        left = x if text.get("text-anchor") == "start" else x - half
        assert left >= 0
        assert left + 2 * half <= width + 1
        assert size <= y <= height
        boxes.append((left, y - 0.7 * size, left + 2 * half, y))
    for one, other in combinations(boxes, 2):
        across = min(one[2], other[2]) - max(one[0], other[0])
        down = min(one[3], other[3]) - max(one[1], other[1])
        assert across <= 0 or down <= 0


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_nodes_of_trees_do_not_overlap(seed, balanced):
    vtree = Vtree.random(20, seed=seed, balanced=balanced)
    names = [f"variable {i}" * (i % 3 + 1) for i in range(20)]
    svg = ElementTree.fromstring(layered_svg(vtree.draw(names).graph))
    discs = [(float(d.get("cx")), float(d.get("cy"))) for d in svg.iter(f"{SVG}circle")]
    assert len(set(discs)) == 19
    assert all(0 < x < float(svg.get("width")) for x, _ in discs)


# -- Graphviz -----------------------------------------------------------------------------


@given(circuits())
@settings(max_examples=30, deadline=None)
def test_dot_has_every_node_and_every_edge(circuit):
    drawing = circuit.draw()
    dot, graph = drawing.dot, drawing.graph
    nodes = re.findall(r"^(\w+) \[label=", dot, re.MULTILINE)
    edges = re.findall(r"^(\w+) -> (\w+)", dot, re.MULTILINE)
    assert nodes == [node.name for node in graph.nodes]
    assert len(set(nodes)) == len(nodes)
    assert edges == [(edge.upper, edge.lower) for edge in graph.edges]
    assert {end for edge in edges for end in edge} <= set(nodes)
    assert dot.count("{") - dot.count("∈ {") == 1
    assert sorted(dot_words(drawing)) == sorted(words(drawing))


def test_dot_of_a_vtree_has_its_branches(figure_vtree):
    dot = figure_vtree.draw().dot
    assert re.findall(r"(v\d) -> (v\d)", dot) == [
        ("v3", "v1"),
        ("v3", "v2"),
        ("v4", "v0"),
        ("v4", "v3"),
    ]


# -- too large ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "circuit",
    [
        independent(Vtree.balanced(200), [[0.5, 0.5]] * 200),
        random_probabilistic(Vtree.balanced(16), units=8, seed=0),
    ],
    ids=["many gates", "many wires"],
)
def test_large_circuits_are_summarised(circuit):
    drawing = circuit.draw()
    s = circuit.structure
    assert f"{s.n_nodes} nodes and {s.n_elements} elements, by vtree node" in drawing.title
    shown = words(drawing)
    assert len(shown) == len(circuit.vtree)
    root = s.n_elements - s.element_start[-2]
    assert f"1 node, {root} element" + ("s" if root > 1 else "") in shown
    assert sum(int(re.search(r"(\d+) nodes?", word)[1]) for word in shown) == s.n_nodes
    assert sorted(dot_words(drawing)) == sorted(shown)
    assert len(re.findall(r"->", drawing.dot)) == len(circuit.vtree) - 1


def test_very_large_circuits_are_refused_with_advice():
    circuit = independent(Vtree.balanced(201), [[0.5, 0.5]] * 201)
    with pytest.raises(StructureError, match=r"401 nodes and 200 elements.*vtree\.draw\(\)"):
        circuit.draw()


@pytest.mark.parametrize("build", [Vtree.balanced, Vtree.right_linear])
def test_a_vtree_is_drawn_whatever_its_size(build):
    vtree = build(1500)
    assert len(words(vtree.draw())) == 1500


# -- files --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "notation"), [("a.svg", "svg"), ("a.SVG", "svg"), ("a.dot", "dot"), ("a.gv", "dot")]
)
def test_the_ending_chooses_the_notation(tmp_path, figure_vtree, name, notation):
    drawing = figure_vtree.draw(["α", "β", "γ"])
    drawing.save(tmp_path / name)
    assert (tmp_path / name).read_text(encoding="utf-8") == getattr(drawing, notation)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_other_endings_are_refused(tmp_path, figure_vtree):
    with pytest.raises(ValueError, match=r"'a\.bmp'.*\.svg, \.pdf or \.png.*\.dot or \.gv"):
        figure_vtree.draw().save(tmp_path / "a.bmp")
    assert list(tmp_path.iterdir()) == []


@needs_dot
@pytest.mark.parametrize(("name", "start"), [("a.pdf", b"%PDF"), ("a.png", b"\x89PNG")])
def test_graphviz_makes_other_pictures(tmp_path, figure_distribution, name, start):
    figure_distribution.draw().save(tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)


@needs_dot
def test_graphviz_shows_the_same_words_and_tips():
    names = ['a<b>&"c"', "back\\slash\x00\nnew  line", '&lt; id="x"', "<!--", "\\N \\G %s"]
    drawing = independent(Vtree.balanced(5), [[0.5, 0.5]] * 5).draw(names)
    svg = ElementTree.fromstring(drawing.svg)
    shown = [text.text for text in svg.iter(f"{SVG}text")]
    assert sorted(word for word in shown[1:] if word not in "∨∧") == sorted(words(drawing))
    tips = {link.get("{http://www.w3.org/1999/xlink}title") for link in svg.iter(f"{SVG}a")}
    assert {node.tip.replace("\\", "∖") for node in drawing.graph.nodes if node.tip} == tips
    assert not [one for one in svg.iter() if one.get("id")]


def test_without_graphviz_pictures_say_what_to_install(tmp_path, figure_vtree, without_dot):
    drawing = figure_vtree.draw()
    assert drawing.svg == layered_svg(drawing.graph)
    with pytest.raises(ExpectaError, match=r"PNG needs .*apt install graphviz.*as \.svg or \.dot"):
        drawing.save(tmp_path / "a.png")
    assert list(tmp_path.iterdir()) == []


def test_a_graphviz_that_fails_or_hangs_is_an_error_but_for_svg(monkeypatch, figure_vtree):
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/dot")

    def fail(command, **_):
        raise subprocess.CalledProcessError(1, command, stderr=b"no such thing\n")

    def hang(command, **options):
        raise subprocess.TimeoutExpired(command, options["timeout"])

    for run, words_of_error in ((fail, "failed: no such thing"), (hang, "within 60 seconds")):
        monkeypatch.setattr("subprocess.run", run)
        drawing = figure_vtree.draw()
        with pytest.raises(ExpectaError, match=words_of_error):
            drawing.save("a.pdf")
        assert drawing.svg == layered_svg(drawing.graph)


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch, figure_vtree):
    path = tmp_path / "a.svg"
    path.write_text("old")

    def fail(*_):
        raise OSError(28, "disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        figure_vtree.draw().save(str(path))
    assert path.read_text() == "old"
    assert [found.name for found in tmp_path.iterdir()] == ["a.svg"]


def test_a_drawing_is_immutable_and_shows_itself(figure_vtree):
    drawing = figure_vtree.draw()
    assert drawing._repr_svg_() == drawing.svg
    assert repr(drawing) == "Drawing('A vtree over 3 variables')"
    assert drawing == Drawing(drawing.graph)
    with pytest.raises(AttributeError):
        drawing.svg = ""
