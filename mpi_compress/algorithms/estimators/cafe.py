from typing import Any

from mpi_compress.algorithms.vocabulary import (
    ADDS_UP,
    HEARS_MEAN,
    Batch,
    Estimator,
    MinibatchParameters,
    Rounds,
    Shards,
    algorithms,
)


@algorithms.register("cafe")
class CAFe(MinibatchParameters, Estimator):
    """CAFe, compressed aggregate feedback: Ortega, Huang, Li, Jafarkhani (2025). g starts at 0.

    worker sends     c_i ← C(∇f_i(x) − g),   g the direction of the round before
    master answers   c ← (1/n) Σ c_i
    everyone         g ← g + c;  x ← x − γ g

    What all workers have in common, and everyone knows, is not sent again. Workers remember nothing, so any of them may take part.
    Where C is biased and the ∇f_i(x*) differ, a bias stays, as with `gd`. With one worker it is `ef21`. The abstract and public
    summaries alone were at hand; γ = 1/L is no theorem's.
    """

    paper = "CAFe"
    compressor = "top-k"
    adds_up = True
    needs = (*ADDS_UP, HEARS_MEAN)
    partial_mean = "over participants"

    def workers_send(self, node: Any, w: None, fs: Shards, t: Rounds) -> Batch:
        return self.up.pack(fs.gradients(node.x, self.rows(fs, t)) - node.memory.g, t)
