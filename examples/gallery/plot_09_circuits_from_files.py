"""
Read circuits in the authors' file formats
==========================================

``.vtree``, ``.psdd`` and ``.glc`` (or ``.circuit``) are the text formats of the field. Here the
three files are written by hand; those that the paper's authors published are read by the same
calls.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

from expecta import Pair, ProbabilisticCircuit, RegressionCircuit, Vtree

folder = Path(tempfile.mkdtemp())
(folder / "small.vtree").write_text("vtree 3\nL 0 1\nL 2 2\nI 1 0 2\n")

# %%
# A PSDD over two bits: the first is true with probability 0.3; the second then with 0.9, else
# with 0.2.
(folder / "small.psdd").write_text(
    "psdd 5\n"
    "L 0 0 1\nL 1 0 -1\n"
    "T 2 2 2 -0.10536051565782628\n"  # log 0.9
    "T 3 2 2 -1.6094379124341003\n"  # log 0.2
    "D 4 1 2 0 2 -1.203972804325936 1 3 -0.35667494393873245\n"  # log 0.3, log 0.7
)

# %%
# A regression circuit: 10 if the first bit is true, and 1 more if the second is.
(folder / "small.glc").write_text(
    "Regression Circuit\nT 0 0 1 0.0\nF 1 0 1 0.0\nT 2 2 2 1.0\nF 3 2 2 0.0\n"
    "D 4 1 4 (0 2 10.0) (0 3 10.0) (1 2 0.0) (1 3 0.0)\nB 0.0\n"
)

vtree = Vtree.load(folder / "small.vtree")
p = ProbabilisticCircuit.load(folder / "small.psdd", vtree)
g = RegressionCircuit.load(folder / "small.glc", vtree)
pair = Pair(p, g)
print(p.properties)
print(pair.expectation([[-1, -1], [1, -1], [-1, 1]]))  # nothing known; the first bit; the second

# %%
# One file of Expecta's own format holds all of it.
pair.save(folder / "small.expecta")
pair = Pair.load(folder / "small.expecta")

# %%
# Evidence about the second bit moves the expectation of g through what it tells about the first.
known = [[-1, -1], [-1, 0], [-1, 1], [1, -1], [0, -1]]
names = ["nothing", "second = 0", "second = 1", "first = 1", "first = 0"]
figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.errorbar(pair.expectation(known), names, xerr=pair.std(known), fmt="o", capsize=4)
ax.set(xlabel="expectation of g, and its spread over what is unknown")
