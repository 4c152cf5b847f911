from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from mpi_compress.algorithms.contract import algorithms
from mpi_compress.algorithms.needs import EXACT_DOWN
from mpi_compress.algorithms.papers.double_encoding import LATTICE
from mpi_compress.algorithms.papers.iade import IADE, Master, Node
from mpi_compress.core.streams import Round
from mpi_compress.messages.kinds import Compressed
from mpi_compress.messages.link import Message


@algorithms.register("dqgd")
@dataclass(frozen=True)
class DQGD(IADE):
    """Quantised gradient differences, one direction: Khirirat, Feyzmahdavian, Johansson (2018), by a precision that grows.

    worker sends     d_i ← Q(∇f_i(x) − s_i, σ_k);  s_i ← s_i + d_i          σ_k = s c'^(k+1)
    master answers   d̄ ← (1/n) Σ d_i, exactly
    everyone         v ← v + d̄;  x ← x − η v

    As in `iade`, ‖v_k − ∇f(x_k)‖ ≤ s c'^(k+1), so Theorem 3.1 of the AIADE paper holds here too.

    Without [up] that link is a lattice with floats of 32 bits.
    """

    paper = "DQGD, AIADE's rival"
    needs = (*IADE.needs, EXACT_DOWN)
    links: ClassVar[Mapping[str, Any]] = {"up": LATTICE}

    def sigma(self, k: int) -> float:
        return self.budget(k)

    def master_answers(self, node: Node, master: Master, ups: Sequence[Compressed], t: Round) -> Message:
        return self.down.pack(self.mean(ups), t)
