"""Load data sets: one that comes with the package, those of the paper and of the field."""

from expecta.datasets.density_data import DENSITY_NAMES, DensityData, load_density
from expecta.datasets.insurance import load_insurance
from expecta.datasets.paper import PAPER_NAMES, PaperData, load_paper, paper_split

__all__ = [
    "DENSITY_NAMES",
    "PAPER_NAMES",
    "DensityData",
    "PaperData",
    "load_density",
    "load_insurance",
    "load_paper",
    "paper_split",
]
