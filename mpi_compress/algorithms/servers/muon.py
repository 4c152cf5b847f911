from mpi_compress.algorithms.parts import servers
from mpi_compress.algorithms.servers.lmo import NormStep
from mpi_compress.core.fields import Decay


@servers.register("muon")
class Muon(NormStep):
    """Muon (Jordan et al. 2024): each matrix of the model moves along the polar factor of its momentum, γ its spectral norm.

    m ← β m + g;  M ← M − γ UVᵀ for a matrix with the momentum U diag(s) Vᵀ;  v ← v − γ sign(m_v) for a vector

    It is `lmo` with the spectral norm. With EF21 it is EF21-Muon, with local-sgd MuLoCo's outer step. Newton–Schulz steps, which
    authors take in place of the singular value decomposition, give singular values near 1; here they are 1.
    """

    paper = "Jordan et al. 2024"
    beta: Decay = 0.95  # β, the share that m keeps
