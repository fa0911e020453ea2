"""Learn PSDDs: deterministic circuits grown by splitting and cloning.

``growing_circuit`` holds the circuit and the way of every row through it,
``reached_circuit`` numbers what some rows reach, ``divisions`` scores what to divide,
``copy_plan`` decides what is copied, ``copy_writing`` copies it, ``split_and_clone`` puts
these together, ``greedy_search`` queues them, ``psdd_learner`` listens to the held-out
rows; ``smoothing`` and ``fit_psdd`` give the probabilities.
"""

from expecta.learn.psdd.fit_psdd import fit_parameters
from expecta.learn.psdd.psdd_learner import LearnedPSDD, SearchStep, learn_psdd

__all__ = ["LearnedPSDD", "SearchStep", "fit_parameters", "learn_psdd"]
