"""Data of one's own: arrays and CSV files as LIBSVM text, with rows held out for a test set."""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import scipy  # which loads sparse where it is first used

from mpi_compress.core.errors import UserError, checked_at
from mpi_compress.core.streams import Role, Streams
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.datasets import libsvm
from mpi_compress.problem.datasets.cache import replace


def save(X: Any, y: Any, path: str | Path, test: float = 0.0, seed: int = 0) -> list[Path]:
    """Write samples and labels as LIBSVM text, which jobs read by `path`; the files written.

    Args:
        X: (N, d), an array or a SciPy sparse matrix.
        y: (N,) labels, numbers.
        path: .gz, .bz2 and .xz are compressed.
        test: the share of rows that go to a second file, for [data] test: `a.libsvm.xz` has `a.t.libsvm.xz` beside it.
        seed: of the draw of these rows.

    Raises:
        UserError: shapes that do not fit, values that are no finite numbers, or a file that cannot be written.
    """
    samples = checked_at(f"{path}: samples should be numbers", scipy.sparse.csr_matrix, X, dtype=np.float64)
    labels, path = checked_at(f"{path}: labels should be numbers", np.asarray, y, dtype=np.float64), Path(path)
    if labels.shape != samples.shape[:1]:
        raise UserError(f"{path}: there are {samples.shape[0]} samples, and labels of shape {labels.shape}")
    if not (np.isfinite(samples.data).all() and np.isfinite(labels).all()):
        raise UserError(f"{path}: a sample or a label is not finite; fill or leave out these samples first")
    if not (isinstance(test, float | int) and 0 <= test < 1):
        raise UserError(f"{path}: test = {test} must be at least 0 and below 1")
    order = Streams(seed).at(Role.BATCH, 0, 0).permutation(labels.size)
    held_out = np.zeros(labels.size, dtype=bool)
    held_out[order[: round(test * labels.size)]] = True
    write(path, [(_of_all_features(samples[~held_out]), labels[~held_out])])
    if not held_out.any():
        return [path]
    stem, dot, rest = path.name.partition(".")
    beside = path.with_name(f"{stem}.t{dot}{rest}")
    write(beside, [(samples[held_out], labels[held_out])])
    return [path, beside]


def _of_all_features(samples: Any) -> Any:
    """The same samples with a 0 written out in the last column, so that a reader finds d also where no row has that feature."""
    all_of_it = samples.tocoo()
    rows, columns = np.append(all_of_it.row, 0), np.append(all_of_it.col, samples.shape[1] - 1)
    with_last = scipy.sparse.csr_matrix((np.append(all_of_it.data, 0.0), (rows, columns)), shape=samples.shape)
    return samples if samples[:, -1].nnz else with_last


def write(path: Path, chunks: Iterable[tuple[Any, Vector]]) -> int:
    """Write chunks of samples and labels as LIBSVM text, and return the number of the samples."""
    rows = 0

    def fill(part: Path) -> None:
        nonlocal rows
        with libsvm.open_text(part, "wb", path.suffix) as out:
            for samples, labels in chunks:
                libsvm.write(out, samples, labels)
                rows += labels.size

    replace(path, fill)
    return rows


_MISSING = ("", "na", "n/a", "nan", "null", "none", "?", "-")  # how a cell says that it has no value, in small letters


@dataclass(frozen=True)
class CsvTable:
    """A CSV file as samples and labels."""

    X: Any  # (N, d) CSR matrix
    y: Vector  # (N,)
    label: str  # the column of the labels
    features: Sequence[str]  # (d,) the column of each feature; "colour=red" for a word's
    classes: Mapping[str, int]  # the number of each label that is a word; empty where labels are numbers
    remarks: Sequence[str]  # one for each column of words most of whose cells are numbers


def read_csv(path: Path, label: str | int = -1) -> CsvTable:
    """The rows of a CSV file. A column of numbers is a feature; one with words has a feature of 0 and 1 for each different word.

    Args:
        label: the column of labels, by its name or its place from 0; −1 is the last one. Words become 0, 1, … in their order.

    Raises:
        UserError: with the line: a row of another length, or a cell without a value in a column of numbers.
    """
    head, lines, rows = _cells(path)
    at = _place(path, head, label)
    columns = dict(zip(head, zip(*rows, strict=True), strict=True))
    for name, cells in columns.items():
        _check_values(path, name, cells, lines)
    labels = columns.pop(head[at])
    y, classes = _numbers(labels), dict[str, int]()
    if y is None:
        words, numbered = np.unique(labels, return_inverse=True)
        y, classes = numbered.astype(np.float64), {str(word): i for i, word in enumerate(words)}
    features, blocks, remarks = list[str](), list[Any](), list[str]()
    for name, cells in columns.items():
        numbers = _numbers(cells)
        if numbers is not None:
            features.append(name)
            blocks.append(scipy.sparse.csr_matrix(numbers[:, None]))
        else:
            are_words = [_numbers([cell]) is None for cell in cells]
            if 2 * sum(are_words) < len(cells):
                i = are_words.index(True)
                numbers_too = f"{len(cells) - sum(are_words)} of which are numbers"
                remarks.append(f"{name} is taken as words, {numbers_too}: line {lines[i]} has '{cells[i]}'")
            words, which = np.unique(np.array(cells), return_inverse=True)
            features += [f"{name}={word}" for word in words]
            entries = np.ones(len(cells)), (np.arange(len(cells)), which)
            blocks.append(scipy.sparse.csr_matrix(entries, shape=(len(cells), words.size)))
    return CsvTable(scipy.sparse.hstack(blocks, format="csr"), y, head[at], features, classes, remarks)


def _cells(path: Path) -> tuple[list[str], list[int], list[list[str]]]:
    """The names of the columns, "0", "1", … where the first line has numbers; and the rows, each with its line."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [*_same_length(path, csv.reader(file))]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: cannot be read as CSV: {error}") from None
    if not rows:
        raise UserError(f"{path}: there are no rows")
    first = rows[0][1]
    has_head = all(_numbers([cell]) is None for cell in first)
    head = rows.pop(0)[1] if has_head else [str(i) for i in range(len(first))]
    if not rows or len(set(head)) < len(head):
        raise UserError(f"{path}: " + ("two columns have one name" if rows else "there are no rows below the names"))
    return head, [line for line, _ in rows], [cells for _, cells in rows]


def _same_length(path: Path, rows: Any) -> Iterator[tuple[int, list[str]]]:
    length = 0
    for row in rows:
        length = length or len(row)
        if length == 1:
            commas = "commas between them" + ", and not ';'" * (";" in row[0])
            raise UserError(f"{path}: there is one column; a label and at least one feature are required, with {commas}")
        if row and len(row) != length:
            raise UserError(f"{path}:{rows.line_num}: {len(row)} cells, where the first line has {length}")
        if row:
            yield rows.line_num, [cell.strip() for cell in row]


def _place(path: Path, head: list[str], label: str | int) -> int:
    if str(label) in head:
        return head.index(str(label))
    if isinstance(label, int) and -len(head) <= label < len(head):
        return label % len(head)
    raise UserError(f"{path}: no column called '{label}'; there are: {', '.join(head)}")


def _check_values(path: Path, name: str, cells: Sequence[str], lines: Sequence[int]) -> None:
    """UserError where a column of numbers has a cell without a value."""
    is_there = [cell.lower() not in _MISSING for cell in cells]
    if any(is_there) and not all(is_there) and _numbers([*compress(cells, is_there)]) is not None:
        i = is_there.index(False)
        shown = f" ('{cells[i]}')" * bool(cells[i])
        raise UserError(f"{path}:{lines[i]}: column '{name}' has no value{shown}; fill it, or leave the row out")


def _numbers(cells: Sequence[str]) -> Vector | None:
    try:
        return np.array([float(cell) for cell in cells])
    except ValueError:
        return None
