"""Ways to play all workers of one process together, equal to one by one to the last bit.

A way states for which (algorithm, link, problem) it holds, and is registered for the methods whose lines it plays. Deleting this
folder leaves a correct, slower program.
"""

from mpi_compress.algorithms.hosted import HostedWorkers
from mpi_compress.core.registry import import_all
from mpi_compress.engine.fast.gradients import GradientsTogether
from mpi_compress.engine.fast.ways import fastest

import_all(__name__)


def faster(hosted: HostedWorkers) -> HostedWorkers:
    """The same workers, played by the fastest way that holds for them; none holds where some of them may sleep."""
    setting = hosted.algorithm.setting
    if setting.r < setting.n or hosted.algorithm.answers_each:
        return hosted
    GradientsTogether.of(hosted.objectives.values())
    return hosted if hosted.algorithm.up.compressor.has_state else fastest(hosted)
