"""PSDDs: deterministic circuits grown by splitting and cloning.

``routes`` follows rows through a circuit, ``state`` holds the circuit that grows,
``scores`` and ``candidates`` find what to divide, ``plan`` decides what is copied,
``change`` copies it, ``operations`` puts these together, ``search`` queues them,
``learn`` listens to the held-out rows; ``parameters`` and ``flows`` fit what is given.
"""

from expecta.learn.psdd.learn import Learned, Step, learn_psdd
from expecta.learn.psdd.parameters import fit_parameters

__all__ = ["Learned", "Step", "fit_parameters", "learn_psdd"]
