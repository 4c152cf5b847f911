"""What labels stand for: two classes ±1, classes 0, 1, 2, …, or numbers to be fitted."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mpi_compress.core.errors import UserError
from mpi_compress.core.progress import count_text
from mpi_compress.messages.kinds import Vector

MOST_CLASSES = 10_000
Labels = Literal["sign", "class", "number"]


@dataclass(frozen=True)
class Classes:
    """Which labels count as +1 and which as −1, or which is class 0, 1, 2, …; if all are empty, labels are numbers."""

    plus: tuple[float, ...] = ()
    minus: tuple[float, ...] = ()
    each: tuple[float, ...] = ()  # the label of class 0, 1, 2, …

    def numbers(self, labels: Vector, title: str) -> Vector:
        """What labels (N,) of this set, or of its test set, stand for; UserError if a label is in no class."""
        known = (*self.minus, *self.plus, *self.each)
        stray = labels[~np.isin(labels, known)] if known else labels[:0]
        if stray.size:
            raise UserError(f"data: {title} has a label {stray[0]:g}, and the training set has {listed(known)}")
        if self.each:
            return np.searchsorted(self.each, labels).astype(float)
        return np.where(np.isin(labels, self.plus), 1.0, -1.0) if known else labels


def classes_of(labels: Vector, kind: Labels, positive: list[float] | None, title: str) -> Classes:
    """What the labels (N,) of a training set stand for; UserError if they are not of that kind.

    Args:
        positive: the labels that are +1, the rest are −1; None: the larger of two is +1.
    """
    if kind == "number":
        return Classes()
    found, first, counts = np.unique(labels, return_index=True, return_counts=True)
    if kind == "sign" and positive is not None:
        return _in_two(found, positive, title)
    if found.size < 2:
        raise UserError(f"data: {title} has one class only, label {found[0]:g}; two are needed")
    if kind == "sign" and found.size > 2:
        least = counts.argmin()
        few = f"{found[least]:g} is that of {count_text(counts[least], 'row')}, at first in row {first[least] + 1}"
        which = f"say which count as +1: positive = [{np.delete(found, least)[-1]:g}, …]"
        raise UserError(f"data: {title} has {found.size} labels, {listed(found)}; {few}; {which}")
    if found.size > MOST_CLASSES:
        raise UserError(f"data: {title} has {found.size} different labels, {listed(found)}; they are numbers rather than classes")
    each = tuple(found.tolist())
    return Classes(each[1:], each[:1]) if kind == "sign" else Classes(each=each)


def _in_two(found: Vector, positive: list[float], title: str) -> Classes:
    unknown = sorted(set(positive) - set(found))
    if unknown:
        raise UserError(f"data.positive: {title} has no label {unknown[0]:g}; it has {listed(found)}")
    rest = sorted(set(found.tolist()) - set(positive))
    if not rest or not positive:
        which = "no" if not positive else "all"
        raise UserError(f"data.positive: {which} labels of {title} are in it; two classes are needed of {listed(found)}")
    return Classes(tuple(sorted(positive)), tuple(rest))


def listed(values: Any) -> str:
    return ", ".join(f"{v:g}" for v in values[:8]) + ", …" * (len(values) > 8)
