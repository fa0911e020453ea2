"""Pictures: complete, legible, valid, and saved whole or not at all."""

import re
import xml.etree.ElementTree as ElementTree
from itertools import combinations, pairwise

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
from expecta.circuits.drawing.diagram import diagram_of
from expecta.circuits.drawing.labels import colours, variable_names
from expecta.circuits.drawing.layout import lay_out, nearest_in_order
from expecta.circuits.drawing.order import crossings, ordered_rows
from expecta.circuits.drawing.tree import sideways_tree, upright_tree
from expecta.common.errors import StructureError

SVG = "{http://www.w3.org/2000/svg}"
ROUNDING = 0.01


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
    """Return all words of a picture, tips and title left out."""
    return [element.text for element in ElementTree.fromstring(drawing.svg).iter(f"{SVG}text")]


def diagram(circuit, names=None):
    weights = getattr(circuit, "weight", None)
    parameters = np.exp(circuit.log_weight)[:, None] if weights is None else weights
    words = variable_names(circuit.n_variables, names)
    return diagram_of(circuit.structure, parameters, words, 1.0 if weights is None else 0.0)


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


def test_the_function_of_figure_1_shows_every_parameter(figure_function):
    drawing = figure_function.draw()
    shown = [word for word in words(drawing) if "X" not in word]
    expected = [-1.6, 2.1, -5.3, 2, 6.1, 3, -1.1, -4.3, 0.5, -0.3, 2.8, 1.7]
    assert sorted(map(float, shown)) == sorted(expected)


def test_gates_have_two_shapes_and_the_colours_of_their_vtree_nodes(
    figure_vtree, figure_distribution
):
    svg = ElementTree.fromstring(figure_distribution.draw().svg)
    fills = [path.get("fill") for path in svg.iter(f"{SVG}path") if "A" in path.get("d")]
    colour = colours(figure_vtree)
    root, below = colour[4], colour[3]
    assert sorted(fills) == sorted([root] * 2 + [below] * 3)
    assert len([path for path in svg.iter(f"{SVG}path") if "Q" in path.get("d")]) == 4
    vtree_svg = ElementTree.fromstring(figure_vtree.draw().svg)
    assert {disc.get("fill") for disc in vtree_svg.iter(f"{SVG}circle")} == {root, below}


def test_every_inner_vtree_node_has_its_own_colour():
    colour = colours(Vtree.balanced(40))
    assert len(set(colour.values())) == 39


def test_categorical_leaves_are_literals_sets_or_tables():
    vtree = Vtree.balanced(4)
    g = linear(vtree, [[1.0, 2.0, 3.0], [0.0, 5.0, 5.0, 5.0, 0.0], [4.0, 4.0, 4.0], range(12)])
    shown = words(g.draw())
    assert {"X0 = 0", "X0 = 1", "X0 = 2"} < set(shown)
    assert {"X1 ∈ {0, 4}", "X1 ∈ {1..3}", "any X2"} < set(shown)
    assert {"3 more", "…", "8"} < set(shown)
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


@pytest.mark.parametrize("kind", ["vtree", "circuit", "summary"])
def test_pictures_have_a_title_and_an_opaque_ground(kind, figure_vtree, figure_distribution):
    large = random_probabilistic(Vtree.balanced(30), units=6, seed=0)
    drawn = {"vtree": figure_vtree, "circuit": figure_distribution, "summary": large}[kind]
    drawing = drawn.draw()
    svg = ElementTree.fromstring(drawing.svg)
    assert svg.get("role") == "img"
    assert svg.get("aria-label") == svg.find(f"{SVG}title").text == drawing.title
    ground = svg.find(f"{SVG}rect")
    assert (ground.get("width"), ground.get("fill")) == (svg.get("width"), "#ffffff")


def test_the_same_circuit_gives_the_same_picture():
    one, other = (random_regression(Vtree.balanced(6), units=3, seed=5).draw() for _ in range(2))
    assert one == other


# -- where things are ---------------------------------------------------------------------


@given(circuits())
@settings(max_examples=60, deadline=None)
def test_nothing_overlaps(circuit):
    layout = lay_out(diagram(circuit))
    for one, other in combinations(layout.spots, 2):
        assert not one.box.overlaps(other.box)
    for spot in layout.spots:
        box, shape = spot.box, spot.shape
        parts = [label.box for label in shape.parameters + shape.literals]
        parts += [shape.gate] if shape.gate else []
        for one, other in combinations(parts, 2):
            assert not one.overlaps(other)
        for part in parts:
            inside = part.moved(spot.x, spot.top)
            assert box.left - ROUNDING <= inside.left
            assert inside.right <= box.right + ROUNDING
            assert box.top <= inside.top
            assert inside.bottom <= box.bottom + ROUNDING
        assert box.left >= -ROUNDING
        assert box.right <= layout.width + ROUNDING
        assert box.bottom <= layout.height + ROUNDING


@given(circuits())
@settings(max_examples=60, deadline=None)
def test_wires_of_two_sources_meet_only_where_they_cross(circuit):
    layout = lay_out(diagram(circuit))
    for one, other in combinations(layout.routes, 2):
        for first in segments(one):
            for second in segments(other):
                assert not run_together(first, second)
    for route in layout.routes:
        for (x, y), (x_end, y_end) in segments(route):
            left, right, top, bottom = min(x, x_end), max(x, x_end), min(y, y_end), max(y, y_end)
            for spot in layout.spots:
                box = spot.box
                across = left < box.right - 1 and box.left + 1 < right
                enters = across and top < box.bottom - 1 and box.top + 1 < bottom
                # Only from below, at a gate that the wire ends in.
                foot = spot.top + spot.shape.foot
                assert not enters or (x == x_end and top >= foot - ROUNDING)


def segments(route):
    return [pair for line in route.lines for pair in pairwise(line)]


def run_together(first, second):
    """Whether two segments lie on one another for some length."""
    for axis in (0, 1):
        a, b = sorted(point[axis] for point in first), sorted(point[axis] for point in second)
        level = [*(point[1 - axis] for point in first), *(point[1 - axis] for point in second)]
        if max(level) - min(level) < 1 and min(a[1], b[1]) - max(a[0], b[0]) > ROUNDING:
            return True
    return False


@given(circuits())
@settings(max_examples=40, deadline=None)
def test_wires_connect_what_the_circuit_connects(circuit):
    drawn = diagram(circuit)
    layout = lay_out(drawn)
    drawn_wires = []
    for route in layout.routes:
        upwards = [line for line in route.lines if line[0][1] > line[-1][1]]
        start = max((line[0] for line in upwards), key=lambda point: point[1])
        for line in upwards:
            drawn_wires += [(start, *port) for port in ports_at(line[-1], layout.spots)]
    expected = []
    for wire in drawn.wires:
        source, target = layout.spots[wire.source], layout.spots[wire.target]
        expected.append((source.x, source.top, target.x, target.top, wire.label))
    found = [(*start, spot.x, spot.top, label) for start, spot, label in drawn_wires]
    assert sorted(found) == sorted(expected)


def ports_at(point, spots):
    """Return the gates that have an input at a point, with the input's label."""
    found = []
    for spot in spots:
        shape = spot.shape
        if spot.item.kind not in ("or", "and"):
            continue
        labels = [label.text for label in shape.parameters] or ["", ""]
        for port, label in zip(shape.ports, labels, strict=True):
            across, down = spot.x + port - point[0], spot.top + shape.foot - point[1]
            if max(abs(across), abs(down)) < ROUNDING:
                found.append((spot, label))
    return found


def test_inputs_of_an_or_gate_are_in_the_order_of_their_sources():
    drawn = diagram(random_probabilistic(Vtree.balanced(8), units=4, seed=3))
    layout = lay_out(drawn)
    for number, spot in enumerate(layout.spots):
        if spot.item.kind == "or":
            inputs = [wire for wire in drawn.wires if wire.target == number]
            inputs.sort(key=lambda wire: layout.spots[wire.source].x)
            assert [wire.label for wire in inputs] == [p.text for p in spot.shape.parameters]


def test_wires_go_up_from_row_to_row():
    drawn = diagram(random_probabilistic(Vtree.random(8, seed=1, balanced=False), seed=1))
    for wire in drawn.wires:
        assert drawn.items[wire.source].row == drawn.items[wire.target].row + 1


def test_a_circuit_that_shares_nothing_is_drawn_without_crossings(figure_function):
    drawn = diagram(figure_function)
    assert crossings(drawn, ordered_rows(drawn)) == 0


def test_ordering_removes_crossings(monkeypatch):
    drawn = diagram(random_probabilistic(Vtree.balanced(8), units=4, seed=3))
    rows = ordered_rows(drawn)
    monkeypatch.setattr("expecta.circuits.drawing.order.SWEEPS", 0)
    assert crossings(drawn, rows) < crossings(drawn, ordered_rows(drawn))
    assert [sorted(row) for row in rows] == [sorted(row) for row in ordered_rows(drawn)]


def test_crossings_are_counted_pair_by_pair():
    drawn = diagram(random_probabilistic(Vtree.balanced(8), units=4, seed=3))
    rows = ordered_rows(drawn)
    by_pairs = 0
    place = {item: i for row in rows for i, item in enumerate(row)}
    for one, other in combinations(drawn.wires, 2):
        if drawn.items[one.target].row != drawn.items[other.target].row:
            continue
        ports = [w.port / 2 if drawn.items[w.target].kind == "and" else 0 for w in (one, other)]
        above = place[one.target] + ports[0] - place[other.target] - ports[1]
        by_pairs += above * (place[one.source] - place[other.source]) < 0
    assert crossings(drawn, rows) == by_pairs


@given(st.data())
@settings(max_examples=50, deadline=None)
def test_places_are_the_nearest_that_keep_their_distance(data):
    n = data.draw(st.integers(1, 6))
    numbers = st.floats(-50, 50)
    wished = data.draw(st.lists(numbers, min_size=n, max_size=n))
    weights = data.draw(st.lists(st.floats(0.1, 5), min_size=n, max_size=n))
    apart = data.draw(st.lists(st.floats(0, 20), min_size=n - 1, max_size=n - 1))
    found = np.array(nearest_in_order(wished, weights, apart))
    assert np.all(np.diff(found) >= np.array(apart) - 1e-9)

    def cost(places):
        return float(np.sum(np.array(weights) * (np.array(places) - wished) ** 2))

    # A convex cost is least where no allowed step towards another point lowers it.
    other = np.sort(np.array(data.draw(st.lists(numbers, min_size=n, max_size=n))))
    other += np.concatenate([[0.0], np.cumsum(apart)])
    assert cost(found) <= cost(found + 1e-3 * (other - found)) + 1e-9


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_trees_do_not_overlap(seed, balanced):
    vtree = Vtree.random(20, seed=seed, balanced=balanced)
    names = [f"variable {i}" * (i % 3 + 1) for i in range(20)]
    texts = [names[x] if x >= 0 else "4 nodes, 8 elements" for x in vtree.variable]
    for tree in (upright_tree(vtree, names), sideways_tree(vtree, texts)):
        assert len(set(tree.places)) == len(vtree)
        for one, other in combinations(tree.labels, 2):
            assert not one.box.overlaps(other.box)
        for label in tree.labels:
            assert label.box.left >= 0
            assert label.box.right <= tree.width
            assert label.box.bottom <= tree.height


def test_the_legend_finds_room_beside_the_circuit():
    names = ["quite a long name"] * 6
    circuit = linear(Vtree.right_linear(6), [[0.0, 1.0]] * 6)
    bare, wide = (circuit.draw(n).svg for n in (None, names))
    for svg in map(ElementTree.fromstring, (bare, wide)):
        for disc in svg.iter(f"{SVG}circle"):
            assert 0 < float(disc.get("cx")) < float(svg.get("width"))
        assert len(list(svg.iter(f"{SVG}circle"))) == 5


# -- Graphviz -----------------------------------------------------------------------------


@given(circuits())
@settings(max_examples=30, deadline=None)
def test_dot_has_every_node_and_every_edge(circuit):
    drawn = diagram(circuit)
    dot = circuit.draw().dot
    nodes = set(re.findall(r"^(n[\d_]+) \[", dot, re.MULTILINE))
    edges = re.findall(r"^(n[\d_]+) -> (n[\d_]+)", dot, re.MULTILINE)
    values = sum(len(item.choices) for item in drawn.items if item.kind == "values")
    assert len(nodes) == len(drawn.items) + values
    assert len(edges) == len(drawn.wires) + values
    assert {end for edge in edges for end in edge} <= nodes
    for wire in drawn.wires:
        assert (f"n{wire.source}", f"n{wire.target}") in edges
    assert dot.count("{") - dot.count("∈ {") == 1


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
    shown = words(drawing)[1:]
    assert len(shown) == len(circuit.vtree)
    root = s.n_elements - s.element_start[-2]
    assert f"1 node, {root} element" + ("s" if root > 1 else "") in shown
    assert sum(int(re.search(r"(\d+) nodes?", word)[1]) for word in shown) == s.n_nodes
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
    with pytest.raises(ValueError, match=r"'a\.png'.*\.svg.*\.dot or \.gv"):
        figure_vtree.draw().save(tmp_path / "a.png")
    assert list(tmp_path.iterdir()) == []


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
    assert drawing == Drawing(drawing.title, drawing.svg, drawing.dot)
    with pytest.raises(AttributeError):
        drawing.svg = ""
