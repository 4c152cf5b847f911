from mpi_compress.algorithms.vocabulary import (
    Direction,
    Server,
    ServerState,
    servers,
)


@servers.register("step")
class GradientStep(Server):
    """x ← x − γ (g + ∇r(x)), r the regulariser where it is not in the f_i; where r is not smooth, x ← prox_{γr}(x − γ g).

    The proximal step is that of Beck and Teboulle (2009).
    """

    scales = True
    proximal = True

    def move(self, s: ServerState, g: Direction, γ: float, k: int) -> None:
        self.along(s.x, g, γ)
