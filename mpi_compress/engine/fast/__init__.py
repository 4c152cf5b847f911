"""Fast paths: all workers of one process together, equal to one by one to the last bit.

A path states for which (algorithm, link, problem) it holds, and whose lines it runs. Deleting this folder leaves a correct, slower
program.
"""

from mpi_compress.algorithms.hosted import HostedWorkers
from mpi_compress.engine.fast.ways import ErrorsTogether, OnlyTouched, Way
from mpi_compress.messages.compressors.base import has_state

WAYS: tuple[type[Way], ...] = (ErrorsTogether, OnlyTouched)


def faster(hosted: HostedWorkers) -> HostedWorkers:
    """The same workers, by the first fast path that applies to them; none does where some of them may sleep."""
    method = hosted.algorithm
    if method.setting.r < method.setting.n or hasattr(method, "answers"):
        return hosted
    for way in WAYS:
        if type(method) in way.plays and not has_state(method.up.compressor) and hosted.workers and way.holds(hosted):
            return way(method, hosted.objectives, hosted.workers, hosted.streams)
    return hosted
