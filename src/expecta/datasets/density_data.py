"""Load the binary data sets on which density learners are compared."""

from __future__ import annotations

from dataclasses import dataclass

from expecta.common.arrays import Ints
from expecta.datasets.data_files import VARIABLE, check_name, folder, load_arrays

_NAMES = (
    "nltcs msnbc kdd plants baudio jester tretail pumsb_star kosarek msweb tmovie cwebkb cr52 "
    "c20ng bbc ad"
)
DENSITY_NAMES = tuple(_NAMES.split())


@dataclass(frozen=True, eq=False)
class DensityData:
    """Rows of Booleans in their usual three parts.

    Parameters
    ----------
    name
        Which set.
    X_train
        Rows to learn from.
    X_valid
        Rows to stop by.
    X_test
        Rows to score.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.zeros((2, 3), int)
    >>> DensityData("mine", rows, rows, rows).X_test.shape
    (2, 3)
    """

    name: str
    X_train: Ints
    X_valid: Ints
    X_test: Ints


def load_density(name: str) -> DensityData:
    """Return one of sixteen binary data sets on which density learners are compared.

    They are read from ``density/NAME.npz`` in the folder that the environment variable
    EXPECTA_DATA names. Most were gathered by Lowd and Davis (2010), the others (tretail,
    pumsb_star, kosarek, bbc, ad) by Van Haaren and Davis (2012).

    Parameters
    ----------
    name
        One of ``DENSITY_NAMES``.

    Examples
    --------
    >>> load_density("nltcs").X_train.shape  # doctest: +SKIP
    (16181, 16)
    """
    check_name(name, DENSITY_NAMES)
    root = folder()
    if root is None:
        raise FileNotFoundError(
            f"the data set {name!r} does not come with the package: set the environment variable "
            f"{VARIABLE} to a folder that holds density/{name}.npz"
        )
    arrays = load_arrays(root / "density" / f"{name}.npz")
    return DensityData(name, arrays["x_train"], arrays["x_valid"], arrays["x_test"])
