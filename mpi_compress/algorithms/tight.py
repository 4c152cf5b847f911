"""The step for which the worst case of EF and EF21 is least, and that worst case: Berg Thomsen, Taylor, Dieuleveut (NeurIPS 2025,
arXiv 2506.05271), for one worker, or workers with equal constants; with ε = 1 − δ."""

import math
from typing import Any

from mpi_compress.algorithms.needs import Need
from mpi_compress.algorithms.theorem import quantities
from mpi_compress.core.expressions import evaluate

STEP = "2/(L_mean + mu)*(1 - sqrt(1 - delta))/(1 + sqrt(1 - delta))"
"""η* as a formula: EF's and EF21's."""


def factor(L: float, µ: float, ε: float) -> float:
    """ρ*, by which V falls in a round with η*: ‖x − x* − e‖² + ‖e‖²/√ε of EF, ‖g − ∇f(x)‖² + √ε‖∇f(x)‖² of EF21."""
    s, gap = math.sqrt(ε), L - µ
    λ = 2 / (L + µ) ** 2 * (1 - s) / (1 + s) * ((1 - s) * gap + (1 + s) * math.sqrt(gap**2 + 16 * L * µ * s / (1 + s) ** 2))
    return s + (1 + s) * gap * λ / 4


def is_taken(method: Any) -> bool:
    """True if the step of a bound method is η*, and it has one worker."""
    numbers = {"L_mean": method.setting.numbers.get("L"), **quantities(method)}
    return bool(method.setting.n == 1 and "delta" in numbers and abs(method.step / evaluate(STEP, numbers) - 1) < 1e-9)


TAKEN = Need(is_taken, 'V of {name} is that of one worker and step = "tight"')
