"""`mpi-compress data solve FILE|NAME|JOB.toml`"""

import os
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpi_compress.cli.parsing import key_values
from mpi_compress.core.errors import UserError

if TYPE_CHECKING:
    from mpi_compress.engine.problems import Problem
    from mpi_compress.job.runs import RunSpec
    from mpi_compress.problem.optimum import Optimum


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE|NAME|JOB.toml")
    text = 'of [data] and [objective], such as loss=hinge mu="1e-4 L"'
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE", help=text)


def act(options: Namespace) -> int:
    from mpi_compress.engine.problems import solve

    seen = set()
    for spec in _runs(options):
        begun = time.perf_counter()
        problem, best = solve(spec)
        key = (problem.data.file, problem.loss, problem.mu)
        if key not in seen:
            seen.add(key)
            for line in _described(problem, best, time.perf_counter() - begun):
                print(line)
    return 0


def _runs(options: Namespace) -> "list[RunSpec]":
    """The runs of a job, or one of no rounds on a file or a set."""
    from mpi_compress.job.loading import load_job

    if options.file.endswith(".toml"):
        if options.settings:
            raise UserError(f"{options.settings[0]}: a job says itself what its problems are")
        return load_job(options.file).runs
    return [_problem_alone(options.file, key_values(options.settings))]


def _problem_alone(given: str, keys: dict[str, Any]) -> "RunSpec":
    from mpi_compress.core.registry import parameters
    from mpi_compress.job.loading import parse_job
    from mpi_compress.job.tables import ObjectiveTable
    from mpi_compress.problem.datasets import KNOWN
    from mpi_compress.problem.datasets.table import find_file

    file = find_file(given)
    source = {"name": given} if given in KNOWN else {"path": str(file)}
    objective = {"mu": "1e-4 L"} if not {"mu", "lambda2"} & set(keys) else {}
    objective |= {k: v for k, v in keys.items() if k in parameters(ObjectiveTable)}
    data = {k: v for k, v in keys.items() if k not in objective}
    tables = {"data": source | data, "objective": objective, "algorithm": {"name": "gd", "step": 1.0}, "stop": {"rounds": 0}}
    return parse_job(tables, "solve", Path(), {}).runs[0]


def _described(problem: "Problem", best: "Optimum", seconds: float) -> Iterator[str]:
    import numpy as np

    from mpi_compress.problem.datasets.cache import cache_folder
    from mpi_compress.problem.losses import losses
    from mpi_compress.problem.optimum import solver_of

    data = problem.data
    yield f"{data.title}: {data.n_samples} samples, d = {data.dim}, {problem.loss}"
    if not np.isnan(problem.L):
        kappa = problem.L / problem.mu if problem.mu else np.inf
        yield f"  L     {problem.L - problem.mu:.10g} of the data part, mu {problem.mu:.6g}, kappa {kappa:.6g}"
    else:
        yield f"  L     none, the loss is not smooth; mu {problem.mu:.6g}"
    measure = solver_of(losses[problem.loss]()).measure
    yield f"  f*    {best.f:.15g} to {best.accuracy:.1g}; {measure} {best.reached:.1g} of what it was at 0"
    yield f"  |x*|  {np.linalg.norm(best.x):.6g}, {np.count_nonzero(best.x)} nonzeros; {seconds:.1f} s"
    yield f"  kept  {cache_folder() / 'data'}{os.sep}{data.file.stem}-…"
