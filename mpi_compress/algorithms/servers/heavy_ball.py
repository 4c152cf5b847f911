from dataclasses import dataclass
from typing import Literal

import numpy as np

from mpi_compress.algorithms.parts import Direction, Moved, Point, Server, add, dense, servers
from mpi_compress.core.fields import Decay
from mpi_compress.messages.kinds import Vector


@dataclass
class MovedWithMomentum(Moved):
    m: Vector  # (d,) momentum


@servers.register("heavy-ball")
class HeavyBall(Server):
    """The heavy ball (Polyak 1964): m ← β m + g;  x ← x − γ m.

    Its other forms move x along u in place of m:

    nesterov     u = g + β m (Sutskever et al. 2013; the usual SGD with Nesterov's momentum)
    printed      u = g + m, as HT Algorithm 2 has it; it takes twice the step of Algorithm 1 when β nears 0

    A regulariser µ that is not in the f_i is applied as x ← (1 − γµ) x, and is no part of m.
    """

    paper = "Polyak 1964"
    scales = True
    beta: Decay = 0.9  # β, the share that m keeps
    form: Literal["heavy-ball", "nesterov", "printed"] = "heavy-ball"  # x moves along m, along g + β m, or along g + m

    def start(self, x: Point) -> MovedWithMomentum:
        return MovedWithMomentum(x, self.begun_mean(x), np.zeros_like(dense(x)))

    def move(self, s: MovedWithMomentum, g: Direction, γ: float, k: int) -> None:
        self.regularise(s.x, γ, at_once=self.method.batch is None)
        if self.form != "heavy-ball":
            for term in g:
                add(s.x, term, -γ)
        s.m *= self.beta
        for term in g:
            add(s.m, term)
        add(s.x, s.m, -γ * self.beta if self.form == "nesterov" else -γ)
