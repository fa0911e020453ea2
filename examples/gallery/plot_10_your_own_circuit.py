"""
Your own circuit: expert knowledge as a distribution
====================================================

A circuit need not be learned. Here a small diagnosis: a disease, a test and a symptom, with the
probabilities that an expert would state, and the cost of a treatment as the function.
"""

import matplotlib.pyplot as plt
import numpy as np

from expecta import Evidence, Pair, RegressionCircuit, Vtree, naive_bayes
from expecta.circuits import leaf, literal, node

# %%
# Variables: 0 the disease (no, yes), 1 the test (negative, positive), 2 the symptom (none, mild,
# strong).
vtree = Vtree.from_nested((0, (1, 2)))
p = naive_bayes(
    vtree,
    0,
    [0.95, 0.05],
    [None, [[0.98, 0.02], [0.10, 0.90]], [[0.8, 0.15, 0.05], [0.2, 0.3, 0.5]]],
)

# %%
# Costs: 100 for anybody with a strong symptom, 1,000 more for the disease.
rest = node((0.0, leaf(1, [0, 0]), leaf(2, [0, 0, 100])))
g = RegressionCircuit.build(
    vtree, node((0.0, literal(0, 0), rest), (1000.0, literal(0, 1), rest)), [2, 2, 3]
)
pair = Pair(p, g)

# %%
# A test that is read with doubt is a likelihood; "mild or strong" is a set.
anyone = Evidence.unknown(p.cardinalities)
cases = {
    "nothing known": anyone,
    "symptom mild or strong": anyone.among(2, {1, 2}),
    "test positive": anyone.known(1, 1),
    "test probably positive": anyone.likelihood(1, [0.2, 0.8]),
    "test positive, symptom strong": anyone.known(1, 1).known(2, 2),
}
means = [pair.expectation(case)[0] for case in cases.values()]
disease = [p.marginals(case)[0][0, 1] for case in cases.values()]

figure, axes = plt.subplots(1, 2, figsize=(8, 3), sharey=True, layout="constrained")
axes[0].barh(list(cases), disease)
axes[0].set_xlabel("probability of the disease")
axes[1].barh(list(cases), means)
axes[1].set_xlabel("expected cost")
axes[0].invert_yaxis()
assert np.all(np.diff([disease[0], disease[1], disease[2], disease[4]]) > 0)
