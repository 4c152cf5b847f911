"""LIBSVM text, plain or compressed, read by scikit-learn's parser."""

import bz2
import gzip
import lzma
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from mpi_compress.compressed import Vector
from mpi_compress.errors import UserError

SUFFIXES = ("", ".xz", ".bz2", ".gz")
_OPENERS: dict[str, Any] = {".xz": lzma.open, ".bz2": bz2.open, ".gz": gzip.open}


def open_text(path: Path) -> BinaryIO:
    """The text of a plain, .gz, .bz2 or .xz file as bytes."""
    return _OPENERS.get(path.suffix, open)(path, "rb")


def read(path: Path, dim: int | None = None) -> tuple[Any, Vector]:
    """The samples, a SciPy CSR matrix (N, d), and their labels (N,) as they stand in the file.

    Args:
        path: LIBSVM text, one `label index:value …` line a sample, indices from 1.
        dim: d, where it is known; otherwise the largest index.

    Raises:
        UserError: the file is missing, no LIBSVM text, or has an index above `dim`.
    """
    from sklearn.datasets import load_svmlight_file

    try:
        with open_text(path) as text:
            samples, labels = load_svmlight_file(text, zero_based=False)
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise UserError(f"{path}: is a folder; a file of LIBSVM text is wanted") from None
    except (EOFError, lzma.LZMAError, OSError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    except ValueError as error:
        raise UserError(f"{path}: is no LIBSVM text, `label index:value …` with increasing indices from 1: {error}") from None
    if samples.shape[0] == 0:
        raise UserError(f"{path}: holds no samples")
    if dim is not None and samples.shape[1] > dim:
        raise UserError(f"{path}: has an index {samples.shape[1]}, above dim = {dim}")
    samples.resize(samples.shape[0], dim or samples.shape[1])
    if not (np.all(np.isfinite(samples.data)) and np.all(np.isfinite(labels))):
        raise UserError(f"{path}: has a value or a label that is not a finite number")
    return samples, labels.astype(np.float64)
