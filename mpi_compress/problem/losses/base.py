"""The contract of a loss of a margin: what is known of it is stated by its class, and never inferred."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mpi_compress.core import arrays
from mpi_compress.core.errors import UserError
from mpi_compress.core.registry import Registry, fact
from mpi_compress.core.returned import returns
from mpi_compress.kernels import losses as kernels
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.datasets.labels import Labels
from mpi_compress.problem.mean_loss import MeanLoss
from mpi_compress.problem.rows import Rows

DIFFERENCE = 1e-6  # of margins, over 1 + |m|: the square root of their rounding, and more


def _values_and_slopes(given: Any, m: Vector) -> tuple[Vector, Vector]:
    values, slopes = arrays.pair(given, "the values and the slopes (N,)")
    return arrays.finite_where(m, values, "value"), arrays.finite_where(m, slopes, "slope")


@dataclass(frozen=True)
class Loss(MeanLoss):
    """ℓ(y, m) of a sample with label y and margin m = a·x. A loss gives its values and slopes on arrays; one with a row of its own
    in `mpi_compress.kernels.losses` states its code instead, and is then computed in one pass over the rows."""

    what = "loss"
    of_margin = True
    formula: ClassVar[str] = ""
    third: ClassVar[float] = math.inf  # bounds |∂³ℓ/∂m³|; ∞: not stated, or none does
    real_labels: ClassVar[bool] = False  # True if labels are numbers to be fitted, and not two classes

    def __post_init__(self) -> None:
        super().__post_init__()
        own_values = type(self).value_and_slope is not Loss.value_and_slope
        if self.kernel is None:
            given = "" if own_values else "states no kernel; it needs value_and_slope(self, y, m)"
        elif self.kernel not in range(len(kernels.ROWS)):
            given = f"states kernel = {self.kernel}, which does not exist; it needs value_and_slope(self, y, m)"
        else:
            lacks = kernels.ROWS[self.kernel][1] is None
            given = f"states kernel = {self.kernel}, whose row has no curvature; it needs @row(curvature=…)" if lacks else ""
        if given:
            raise UserError(f"'{self.name}' {given}, or a row of mpi_compress.kernels.losses, such as kernel = LOGISTIC")

    @fact
    def labels(self) -> Labels:
        return "number" if self.real_labels else "sign"

    def mean_loss(self, x: Vector, rows: Rows) -> float:
        """The mean loss of rows at x (d,), of a test set for example."""
        if self.kernel is None:
            return float(np.mean(self.value_and_slope(rows.labels, rows.margins(x))[0]))
        return kernels.mean_loss(self.kernel, rows.labels, rows.margins(x))

    def scores(self, x: Vector, rows: Rows) -> Vector:
        """The margins (N,) of rows at x (d,)."""
        return rows.margins(x)

    @property
    def smooth(self) -> bool:
        """True if the gradient is known to be Lipschitz continuous."""
        return math.isfinite(self.curvature)

    @returns(lambda loss, given, y, m: _values_and_slopes(given, m))
    def value_and_slope(self, y: Vector, m: Vector) -> tuple[Vector, Vector]:
        """ℓ(y, m) and ∂ℓ/∂m (N,) of labels and margins (N,)."""
        values, slopes = np.empty(m.size), np.empty(m.size)
        kernels.losses_and_slopes(self.kernel, y, m, values, slopes)
        return values, slopes

    @returns(lambda loss, given, y, m: arrays.finite_where(m, given, "second derivative"))
    def second_derivative(self, y: Vector, m: Vector) -> Vector:
        """∂²ℓ/∂m² (N,), for solvers; where a loss gives none, a difference quotient of its slopes."""
        if self.kernel is None:
            h = DIFFERENCE * (1.0 + np.abs(m))
            return (self.value_and_slope(y, m + h)[1] - self.value_and_slope(y, m - h)[1]) / (2.0 * h)
        out = np.empty(m.size)
        kernels.curvatures(self.kernel, y, m, out)
        return out


losses: Registry[Loss] = Registry("loss", Loss)
