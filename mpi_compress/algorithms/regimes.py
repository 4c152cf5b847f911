"""ACCORDION's regimes: in which rounds more coordinates are sent."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mpi_compress.kernels.vectors import norm
from mpi_compress.messages.kinds import Compressed, Vector


@dataclass
class Regime:
    """ACCORDION's schedule, by what every node knows: in a critical regime k_max coordinates are sent, else k_min. Agarwal, Wang,
    Lee, Venkataraman, Papailiopoulos (2021)."""

    accumulated: Vector  # (d,) Σ of the mean gradients that were heard in this epoch
    before: float = 0.0  # its norm at the last test
    critical: bool = True

    def hear(self, parameters: Any, heard: Compressed, k: int, epoch: int, step_falls: bool) -> None:
        """Take in the mean gradient of round k.

        The end of the first epoch and of every `every`-th is a test: the regime is critical if |‖Δ_prev‖ − ‖Δ_now‖| / ‖Δ_prev‖ ≥ η,
        Δ_now being the sum of gradients over this epoch, Δ_prev over the last one that was tested. After the first epoch there is
        nothing to compare, and it is not critical. A step that falls makes it critical until the next test.

        Args:
            parameters: the compressor, with `eta` and `every`.
            epoch: rounds of an epoch.
            step_falls: True if γ_(k+1) < γ_k.
        """
        heard.add_to(self.accumulated)
        number, rest = divmod(k + 1, epoch)
        if rest == 0:
            if number == 1 or number % parameters.every == 0:
                now = norm(self.accumulated)
                change = abs(self.before - now)
                self.critical = number > 1 and change >= parameters.eta * self.before and change > 0
                self.before = now
            self.accumulated = np.zeros_like(self.accumulated)
        if step_falls:
            self.critical = True
