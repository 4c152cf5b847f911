"""x* and f*: computed once by the solver that the loss states, and kept beside the data.

They are computed over the whole set in file order by one process, so no number of workers or ranks changes a bit of them.
"""

from mpi_compress.problem.optimum.base import Optimum
from mpi_compress.problem.optimum.solving import SOLVERS, minimize, optimum, optimum_file, solver_of

__all__ = ["SOLVERS", "Optimum", "minimize", "optimum", "optimum_file", "solver_of"]
