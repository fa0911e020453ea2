"""Define the vtree: a full binary tree whose leaves are the variables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from expecta.common.arrays import Ints, frozen
from expecta.common.errors import StructureError

if TYPE_CHECKING:
    from expecta.circuits.drawing import Drawing

Nested: TypeAlias = "int | tuple[Nested, Nested]"


@dataclass(frozen=True, eq=False)
class Vtree:
    """A full binary tree over the variables 0 to n - 1.

    Nodes are numbered in post-order, left before right: children come before
    parents, the root is last, and the nodes below ``v`` are the ``size[v]``
    numbers that end at ``v``. Two vtrees are equal when they have the same
    shape and the same variables at the same leaves.

    Parameters
    ----------
    left, right
        Children of each node, -1 at a leaf.  # (nodes,)
    variable
        Variable at each leaf, -1 at an inner node.  # (nodes,)
    ids
        The numbers the nodes carry in files; in-order positions by default.
        They play no part in equality.

    Examples
    --------
    >>> vtree = Vtree.from_nested((0, (1, 2)))
    >>> vtree.n_variables, vtree.root
    (3, 4)
    >>> vtree
    Vtree((0, (1, 2)))
    """

    left: Ints
    right: Ints
    variable: Ints
    ids: Ints = field(default=None)  # type: ignore[arg-type]

    def __post_init__(self) -> None:
        for name in ("left", "right", "variable"):
            object.__setattr__(self, name, frozen(getattr(self, name), np.int32, 1, name))
        _check(self.left, self.right, self.variable)
        ids = self.inorder if self.ids is None else self.ids
        object.__setattr__(self, "ids", frozen(ids, np.int64, 1, "ids"))
        if len(self.ids) != len(self) or len(np.unique(self.ids)) != len(self):
            raise StructureError("a vtree needs one id per node, all different")

    # -- builders ---------------------------------------------------------------------

    @classmethod
    def from_nested(cls, nested: Nested) -> Vtree:
        """Build a vtree from nested pairs of variables, such as ``(0, (1, 2))``.

        Parameters
        ----------
        nested
            A variable, or a pair of such.
        """
        left: list[int] = []
        right: list[int] = []
        variable: list[int] = []
        done: list[int] = []  # finished subtrees whose parent is still open
        todo: list[tuple[Any, bool]] = [(nested, False)]
        while todo:
            item, children_done = todo.pop()
            if not isinstance(item, tuple | list):
                left.append(-1)
                right.append(-1)
                variable.append(_as_variable(item))
            elif children_done:
                right.append(done.pop())
                left.append(done.pop())
                variable.append(-1)
            elif len(item) != 2:
                raise StructureError(f"a vtree node has two children, not {len(item)}: {item!r}")
            else:
                todo += [(item, True), (item[1], False), (item[0], False)]
                continue
            done.append(len(variable) - 1)
        return cls(np.array(left), np.array(right), np.array(variable))

    @classmethod
    def balanced(cls, order: int | Sequence[int]) -> Vtree:
        """Halve the variables again and again, in the given order.

        Parameters
        ----------
        order
            The variables in their order, or how many there are.

        Examples
        --------
        >>> Vtree.balanced(4)
        Vtree(((0, 1), (2, 3)))
        """

        def halve(part: Sequence[int]) -> Nested:
            if len(part) == 1:
                return part[0]
            middle = len(part) // 2
            return (halve(part[:middle]), halve(part[middle:]))

        return cls.from_nested(halve(_order(order)))

    @classmethod
    def random(cls, n: int, *, seed: int | None = None, balanced: bool = True) -> Vtree:
        """Shuffle the variables, then halve them (or cut them anywhere) recursively.

        The balanced kind is the one the paper learns its circuits on.

        Parameters
        ----------
        n
            How many variables.
        seed
            Seed, or a generator of random numbers.
        balanced
            Whether halves are equal in number.
        """
        rng = np.random.default_rng(seed)
        order = rng.permutation(n).tolist()
        if balanced:
            return cls.balanced(order)
        trees: list[Nested] = _order(order)  # joining random neighbours cuts anywhere
        while len(trees) > 1:
            i = int(rng.integers(len(trees) - 1))
            trees[i : i + 2] = [(trees[i], trees[i + 1])]
        return cls.from_nested(trees[0])

    @classmethod
    def right_linear(cls, order: int | Sequence[int]) -> Vtree:
        """Chain the variables: the first against all others, and so on.

        Parameters
        ----------
        order
            The variables in their order, or how many there are.

        Examples
        --------
        >>> Vtree.right_linear(3)
        Vtree((0, (1, 2)))
        """
        variables = _order(order)
        nested: Nested = variables[-1]
        for variable in reversed(variables[:-1]):
            nested = (variable, nested)
        return cls.from_nested(nested)

    @classmethod
    def left_linear(cls, order: int | Sequence[int]) -> Vtree:
        """Chain the variables from the other side: ``((0, 1), 2)``.

        Parameters
        ----------
        order
            The variables in their order, or how many there are.
        """
        variables = _order(order)
        nested: Nested = variables[0]
        for variable in variables[1:]:
            nested = (nested, variable)
        return cls.from_nested(nested)

    # -- files and pictures -----------------------------------------------------------

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Vtree:
        """Read a ``.vtree`` file, or Expecta's own format.

        Parameters
        ----------
        path
            The file.
        """
        from expecta.files import load

        return load("vtree", path)

    def save(self, path: str | PathLike[str]) -> None:
        """Write a ``.vtree`` file (by that ending), else Expecta's own format. Atomic.

        Parameters
        ----------
        path
            The file.
        """
        from expecta.files import save

        save("vtree", self, path)

    def draw(self, names: Sequence[str] | None = None) -> Drawing:
        """Draw the tree; the result shows itself in a notebook, and saves as a picture or DOT."""
        from expecta.circuits.drawing import draw_vtree

        return draw_vtree(self, names)

    # -- what it is -------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.variable)

    @property
    def root(self) -> int:
        """The root's number: the last."""
        return len(self) - 1

    @property
    def n_variables(self) -> int:
        """How many variables the tree has."""
        return (len(self) + 1) // 2

    @cached_property
    def leaf_of(self) -> Ints:
        """The leaf of each variable.  # (variables,)."""
        leaves = np.flatnonzero(self.variable >= 0)
        out = np.empty(self.n_variables, np.int32)
        out[self.variable[leaves]] = leaves
        return frozen(out, np.int32, 1, "leaf_of")

    @cached_property
    def parent(self) -> Ints:
        """The parent of each node, -1 at the root.  # (nodes,)."""
        out = np.full(len(self), -1, np.int32)
        inner = np.flatnonzero(self.variable < 0)
        out[self.left[inner]] = inner
        out[self.right[inner]] = inner
        return frozen(out, np.int32, 1, "parent")

    @cached_property
    def size(self) -> Ints:
        """The number of nodes below each node, itself included.  # (nodes,)."""
        out = np.ones(len(self), np.int32)
        for v in range(len(self)):
            if self.left[v] >= 0:
                out[v] += out[self.left[v]] + out[self.right[v]]
        return frozen(out, np.int32, 1, "size")

    @cached_property
    def inorder(self) -> Ints:
        """The position of each node from left to right, as ``.psdd`` files count.  # (nodes,)."""
        # In-order, a node comes after its left subtree; in post-order the subtree of v
        # starts at v - size + 1, and so does its range of in-order positions.
        first = np.zeros(len(self), np.int64)
        out = np.zeros(len(self), np.int64)
        for v in range(self.root, -1, -1):
            if self.variable[v] >= 0:
                out[v] = first[v]
                continue
            left, right = self.left[v], self.right[v]
            out[v] = first[v] + self.size[left]
            first[left], first[right] = first[v], out[v] + 1
        return frozen(out, np.int64, 1, "inorder")

    def variables_below(self, v: int) -> list[int]:
        """Return the variables of the subtree at ``v``, from left to right.

        Parameters
        ----------
        v
            A node.
        """
        below = self.variable[v - self.size[v] + 1 : v + 1]
        return [int(x) for x in below if x >= 0]

    def inner(self) -> Iterator[int]:
        """Walk the inner nodes, children before parents.

        Returns
        -------
        iterator
            Numbers of nodes.
        """
        return (v for v in range(len(self)) if self.variable[v] < 0)

    def nested(self) -> Nested:
        """Return the tree as nested pairs, the inverse of :meth:`from_nested`."""
        stack: list[Nested] = []
        for v in range(len(self)):
            if self.variable[v] >= 0:
                stack.append(int(self.variable[v]))
            else:
                stack[-2:] = [(stack[-2], stack[-1])]
        return stack[0]

    def __reduce__(self) -> tuple[Any, ...]:  # through the constructor: checked and frozen
        return Vtree, (self.left, self.right, self.variable, self.ids)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vtree):
            return NotImplemented
        return np.array_equal(self.left, other.left) and np.array_equal(
            self.variable, other.variable
        )

    def __hash__(self) -> int:
        return hash((self.left.tobytes(), self.variable.tobytes()))

    def __repr__(self) -> str:
        if self.n_variables > 12:
            return f"Vtree({self.n_variables} variables)"
        return f"Vtree({self.nested()!r})"


def _order(order: int | Sequence[int]) -> list[Any]:
    variables = list(range(order)) if isinstance(order, int | np.integer) else list(order)
    if not variables:
        raise StructureError("a vtree needs at least one variable")
    return variables


def _as_variable(item: Any) -> int:
    if isinstance(item, bool) or not isinstance(item, int | np.integer):
        raise StructureError(f"a vtree leaf is a variable number, not {item!r}")
    return int(item)


def _check(left: npt.NDArray[Any], right: npt.NDArray[Any], variable: npt.NDArray[Any]) -> None:
    """Refuse anything but a full binary tree in post-order over the variables 0 .. n-1."""
    n = len(variable)
    if n == 0 or n % 2 == 0 or len(left) != n or len(right) != n:
        raise StructureError("a full binary tree has an odd number of nodes")
    stack: list[int] = []
    for v in range(n):
        if variable[v] < 0:
            if variable[v] != -1 or stack[-2:] != [left[v], right[v]]:
                raise StructureError(f"vtree node {v} does not follow its two children")
            stack[-2:] = [v]
        elif left[v] != -1 or right[v] != -1:
            raise StructureError(f"vtree node {v} is a leaf and has children")
        else:
            stack.append(v)
    if len(stack) != 1:
        raise StructureError(f"a vtree has one root, not {len(stack)}")
    seen = np.sort(variable[variable >= 0])
    if not np.array_equal(seen, np.arange(len(seen))):
        raise StructureError("the variables of a vtree are 0 .. n-1, each at one leaf")
