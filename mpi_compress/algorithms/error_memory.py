"""What an error-feedback worker remembers: its error, and its size as it goes."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from mpi_compress.kernels import feedback as kernels
from mpi_compress.messages.kinds import Compressed, Sparse, Vector

_FOLLOWED = 1e-8  # share of what was added and taken out below which a sum is taken anew

LOGS = ("error_norm", "total_error", "density", "corrected_norm")
"""Columns of the trace. Of one worker: ‖e_i‖², its sum over the rounds so far, the share of the coordinates that its last message
sent, ‖p_i/γ‖² of the last round."""


@dataclass
class Memory:
    """A worker's own state. The error is kept in units of the gradient, e_i/γ: then p/γ = e/γ + g costs one addition."""

    e: Vector  # (d,) e_i/γ
    step: float = 0.0  # γ of the last round
    sizes: Vector = field(default_factory=lambda: np.zeros(len(LOGS)))  # what LOGS names, of one worker
    m: Vector = field(default_factory=lambda: np.empty(0))  # (d,) momentum, where workers have one
    h: Vector = field(default_factory=lambda: np.empty(0))  # (d,) what gradients are shifted by, where they are: ef-gdstar's
    squares: float = 0.0  # ‖e_i/γ‖², where it is followed from round to round
    lost: float = 0.0  # and what its additions rounded off
    turned: float = 0.0  # Σ of what was added to it and taken from it since it was last taken from e itself

    def rescale(self, step: float, kept: bool = False) -> None:
        """γ changes: e_i stays, so e_i/γ does not; or, where the error is `kept` in units of the gradient, the other way round."""
        if self.step not in (0.0, step) and not kept:
            ratio = self.step / step
            self.e *= ratio
            self.squares, self.lost, self.turned = (v * ratio * ratio for v in (self.squares, self.lost, self.turned))
        self.step = step

    def keep(self, sent: Compressed) -> None:
        """e ← p − Δ, both over γ: `self.e` holds p/γ, and what was sent of it is taken out."""
        if type(sent) is Sparse:
            kernels.take_out_and_note(sent.indices, sent.values, self.e, self.step, self.sizes)
        else:
            before = kernels.squares(self.e)
            sent.add_to(self.e, -1.0)
            self._note(before, kernels.squares(self.e), sent)

    def keep_touched(self, sent: Compressed, growth: float) -> None:
        """The same at the cost of what was sent, where adding g made ‖e/γ‖² grow by `growth`.

        Where nearly all of ‖e/γ‖² has been taken out again, what is left of it is measured, or it would be but rounding.
        """
        if not isinstance(sent, Sparse):
            self.keep(sent)
            self._settle()
            return
        self._add(growth)
        before, after = kernels.take_out(sent.indices, sent.values, self.e)
        corrected = max(self.squares + self.lost, before)
        self._add(after - before)
        self.turned += abs(growth) + before + after
        if self.squares + self.lost < _FOLLOWED * self.turned:
            self._settle()
        self._note(corrected, self.squares + self.lost, sent)

    def drop(self) -> None:
        """e ← 0."""
        self.e[:] = 0.0
        self.squares = self.lost = self.turned = 0.0

    def _note(self, corrected: float, left: float, sent: Compressed) -> None:
        kernels.note(self.sizes, self.step, corrected, left, sent.elements / sent.dim)

    def _settle(self) -> None:
        self.squares, self.lost, self.turned = kernels.squares(self.e), 0.0, 0.0

    def _add(self, change: float) -> None:
        total = self.squares + change
        big, small = (self.squares, change) if abs(self.squares) >= abs(change) else (change, self.squares)
        self.lost += (big - total) + small
        self.squares = total


def trace_columns(means: Mapping[str, float]) -> Mapping[str, float]:
    """√mean_i‖e_i‖², Σ_t mean_i‖e_i‖², mean density, √mean_i‖p_i/γ‖²."""
    return {**means, "error_norm": math.sqrt(means["error_norm"]), "corrected_norm": math.sqrt(means["corrected_norm"])}
