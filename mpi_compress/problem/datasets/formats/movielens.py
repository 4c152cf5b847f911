import io
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import scipy  # which loads sparse where it is first used

from mpi_compress.core.fields import AtLeastOne, within
from mpi_compress.problem.datasets.formats.base import Blocks, Format, NDArray, Reading, UserError, Vector, content, formats

_COLUMNS = ("userId", "movieId", "rating", "timestamp")
_POSITIVES = 50_000  # of a block
Numbers = NDArray[np.int64]


class _Ratings(NamedTuple):
    """Users and items that were rated, numbered from 0 in the order of their ids."""

    users: Numbers  # (N,) ordered by user, then by time
    items: Numbers  # (N,)
    latest: NDArray[np.bool_]  # (N,) of a user with at least two, which training leaves out
    n_users: int
    n_items: int


@formats.register("movielens")
class MovieLens(Format):
    """ratings.csv of a MovieLens release as implicit feedback (He et al. 2017): a rated item has label 1, an unrated one label 0.

    A row has two features, its user and its item, users first, each of value 1. Every rating is followed by `negatives` items that
    its user has not rated, drawn once for the whole run. The latest rating of each user with at least two is left out of training;
    test = "held-out" is these, each followed by `test_negatives` items that the user has not rated; an item may be drawn twice.
    """

    in_shares = False
    negatives: Annotated[int, within("[0, inf)")] = 4  # unrated items for each rating, of label 0
    test_negatives: AtLeastOne = 99  # unrated items among which the left-out one is ranked
    seed: int = 0  # of the draws of unrated items

    def read(self, path: Path, dim: int | None, part: int, parts: int) -> Reading:
        return self._reading(path, self.negatives, False)

    def read_test(self, path: Path, test: Path | None, dim: int) -> Reading:
        if test is not None:
            raise UserError('data.test: the test set of MovieLens is a part of its ratings; write test = "held-out"')
        return self._reading(path, self.test_negatives, True)

    def _reading(self, path: Path, negatives: int, latest: bool) -> Reading:
        found = _ratings(path)
        if not (found.latest == latest).any():
            raise UserError(f"{path}: no user has two ratings, one for training and one to test")
        pairs = np.unique(found.users * found.n_items + found.items)
        full = np.flatnonzero(np.bincount(pairs // found.n_items) == found.n_items)
        if negatives and full.size:
            raise UserError(f"{path}: user number {full[0] + 1} has rated all {found.n_items} items, so there is none of label 0")
        sizes = {"users": found.n_users, "items": found.n_items, "candidates": self.test_negatives + 1}
        return Reading(self._blocks(found, pairs, negatives, latest), sizes, found.n_users + found.n_items)

    def _blocks(self, found: _Ratings, pairs: Numbers, negatives: int, latest: bool) -> Blocks:
        users, items = (of[found.latest == latest] for of in (found.users, found.items))
        for number, start in enumerate(range(0, users.size, _POSITIVES)):
            rng = np.random.default_rng([self.seed, int(latest), number])
            u, i = users[start : start + _POSITIVES], items[start : start + _POSITIVES]
            of = np.repeat(u, negatives).reshape(u.size, negatives)
            rows_u = np.column_stack([u, of]).ravel()
            rows_i = np.column_stack([i, _unrated(of, pairs, found.n_items, rng)]).ravel()
            columns = np.column_stack([rows_u, found.n_users + rows_i]).ravel()
            shape = (rows_u.size, found.n_users + found.n_items)
            samples = scipy.sparse.csr_matrix((np.ones(columns.size), columns, np.arange(0, columns.size + 1, 2)), shape)
            yield number, samples, np.tile(np.append(1.0, np.zeros(negatives)), u.size)


def _unrated(users: Numbers, pairs: Numbers, n_items: int, rng: np.random.Generator) -> Numbers:
    """An item that is not in `pairs` for each entry of `users`, uniformly."""
    found = rng.integers(n_items, size=users.shape)
    while True:
        keys = users * n_items + found
        rated = pairs[np.minimum(np.searchsorted(pairs, keys), pairs.size - 1)] == keys
        if not rated.any():
            return found
        found[rated] = rng.integers(n_items, size=int(rated.sum()))


def _ratings(path: Path) -> _Ratings:
    table = _table(path)
    users, items = (np.unique(ids, return_inverse=True)[1].astype(np.int64) for ids in table.T[:2])
    order = np.lexsort((np.arange(len(table)), table[:, 3], users))
    users, items = users[order], items[order]
    last = np.append(users[1:] != users[:-1], True)
    last &= np.bincount(users)[users] > 1
    return _Ratings(users, items, last, int(users.max()) + 1, int(items.max()) + 1)


def _table(path: Path) -> Vector:
    """The four columns (N, 4); UserError where they are no numbers."""
    text = content(path)
    head, _, rest = text.partition(b"\n")
    if tuple(name.strip(' "\r') for name in head.decode("utf-8", "replace").split(",")) != _COLUMNS:
        raise UserError(f"{path}:1: the columns should be {','.join(_COLUMNS)}")
    if not rest.strip():
        raise UserError(f"{path}: holds no ratings")
    try:
        table = np.loadtxt(io.BytesIO(rest), delimiter=",", ndmin=2)
    except ValueError:
        table = np.empty((0, 0))
    if table.shape[1:] != (4,) or not np.isfinite(table).all():
        raise UserError(f"{path}: a line is no rating; four numbers are required: {','.join(_COLUMNS)}")
    return table
