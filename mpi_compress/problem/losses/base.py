"""The contract of a loss: what is known of it is stated by its class, and never inferred."""

import math
from dataclasses import dataclass
from typing import ClassVar

from mpi_compress.core.errors import UserError
from mpi_compress.core.registry import Part, Registry
from mpi_compress.kernels.losses import CODES


@dataclass(frozen=True)
class Loss(Part):
    """ℓ(y, m) of a sample with label y and margin m = a·x.

    A loss is computed by one branch of `mpi_compress.kernels.losses`, and is refused if it states none that exists.
    """

    formula: ClassVar[str] = ""
    kernel: ClassVar[int | None] = None  # the code of its branch in kernels.losses
    curvature: ClassVar[float] = math.inf  # bounds ∂²ℓ/∂m², so L = curvature · λmax(AᵀA)/N + µ; ∞: f is not smooth
    solver: ClassVar[str | None] = None  # how x* is computed, a name in problem.optimum.SOLVERS; None: f* is NaN
    real_labels: ClassVar[bool] = False  # True if labels are numbers to be fitted, and not two classes

    def __post_init__(self) -> None:
        if self.kernel not in CODES:
            given = "states no kernel" if self.kernel is None else f"states kernel = {self.kernel}, which does not exist"
            raise UserError(f"'{self.name}' {given}; it needs a branch of mpi_compress.kernels.losses, such as kernel = LOGISTIC")

    @property
    def smooth(self) -> bool:
        """True if the gradient is Lipschitz continuous."""
        return math.isfinite(self.curvature)


losses: Registry[Loss] = Registry("loss", Loss)
