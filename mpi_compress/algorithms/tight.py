"""The step for which the worst case of EF and EF21 is least, and that worst case: Berg Thomsen, Taylor, Dieuleveut (NeurIPS 2025,
arXiv 2506.05271), for one worker, or workers with equal constants; with ε = 1 − δ."""

import math

STEP = "2/(L_mean + mu)*(1 - sqrt(1 - delta))/(1 + sqrt(1 - delta))"
"""η* as a formula: EF's and EF21's."""


def step(L: float, µ: float, ε: float) -> float:
    """η* of a µ-convex f with smoothness L."""
    return 2 / (L + µ) * (1 - math.sqrt(ε)) / (1 + math.sqrt(ε))


def factor(L: float, µ: float, ε: float) -> float:
    """ρ*, by which V falls in a round with η*: ‖x − x* − e‖² + ‖e‖²/√ε of EF, ‖g − ∇f(x)‖² + √ε‖g‖² of EF21."""
    s, gap = math.sqrt(ε), L - µ
    λ = step(L, µ, ε) / (L + µ) * ((1 - s) * gap + (1 + s) * math.sqrt(gap**2 + 16 * L * µ * s / (1 + s) ** 2))
    return s + (1 + s) * gap * λ / 4
