from dataclasses import dataclass
from typing import Any

import numpy as np

from mpi_compress.core.errors import UserError
from mpi_compress.messages.kinds import Vector


@dataclass(frozen=True)
class Classes:
    """Which labels count as +1 and which as −1. If both are empty, labels are numbers to be fitted."""

    plus: tuple[float, ...] = ()
    minus: tuple[float, ...] = ()

    def signs(self, labels: Vector, title: str) -> Vector:
        """±1 for labels (N,) of this set, or of its test set; UserError if a label is in neither."""
        if not self.plus:
            return labels
        positive = np.isin(labels, self.plus)
        stray = labels[~positive & ~np.isin(labels, self.minus)]
        if stray.size:
            raise UserError(f"data: {title} has a label {stray[0]:g}, and the training set has {listed((*self.minus, *self.plus))}")
        return np.where(positive, 1.0, -1.0)


def two_classes(labels: Vector, positive: list[float] | None, title: str) -> Classes:
    """The labels in `positive` against the rest, or the larger of two labels against the smaller; UserError if there are no two."""
    found = np.unique(labels)
    if positive is not None:
        unknown = sorted(set(positive) - set(found))
        if unknown:
            raise UserError(f"data.positive: {title} has no label {unknown[0]:g}; it has {listed(found)}")
        rest = sorted(set(found.tolist()) - set(positive))
        if not rest or not positive:
            which = "no" if not positive else "all"
            raise UserError(f"data.positive: {which} labels of {title} are in it; two classes are needed of {listed(found)}")
        return Classes(tuple(sorted(positive)), tuple(rest))
    if found.size == 1:
        raise UserError(f"data: {title} has one class only, label {found[0]:g}; two are needed")
    if found.size > 2:
        raise UserError(
            f"data: {title} has {found.size} labels, {listed(found)}; say which count as +1: positive = [{found[0]:g}, …]"
        )
    return Classes((float(found[1]),), (float(found[0]),))


def listed(values: Any, most: int = 8) -> str:
    """The first values of a list as text."""
    return ", ".join(f"{v:g}" for v in values[:most]) + (", …" if len(values) > most else "")
