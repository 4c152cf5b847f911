"""`mpi-compress data list | get | make | info | solve`: sets fetched, generated, described, and their optima computed."""

import os
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import scipy  # which loads sparse where it is first used
from numpy.typing import NDArray

from mpi_compress.cli.parsing import key_values
from mpi_compress.core.errors import UserError, nearest
from mpi_compress.core.progress import ignore, print_line
from mpi_compress.core.registry import parameters
from mpi_compress.core.tables import shown
from mpi_compress.core.terminal import say
from mpi_compress.job.loading import load_job, parse_job
from mpi_compress.job.runs import RunSpec
from mpi_compress.job.tables import ObjectiveTable
from mpi_compress.preparing.problems import Problem, solve
from mpi_compress.problem.datasets import fetch, generators
from mpi_compress.problem.datasets.cache import cache_folder, digest
from mpi_compress.problem.datasets.data import read_csv, save, write
from mpi_compress.problem.datasets.known import KNOWN, PUBLISHED, how_to_get
from mpi_compress.problem.datasets.labels import listed
from mpi_compress.problem.datasets.store import counted_in, open_data
from mpi_compress.problem.datasets.table import DataTable, contents_of, find_file, find_set
from mpi_compress.problem.optimum import Optimum, solver_of
from mpi_compress.problem.partitions import Split
from mpi_compress.results.columns import INFIMUM, INFIMUM_IN_PART

_SOLVED_UP_TO = 50_000_000  # nonzeros, and 20 for each coordinate
_UNLIKE = 100.0  # the ratio of two columns' sizes from which "data make" speaks of it


def act_list(_: Namespace) -> int:
    def where(name: str) -> str:
        file = None
        with suppress(UserError):
            file = find_set(name, "data")
            if name in KNOWN and (n := counted_in(file)) and (differs := KNOWN[name].differs(*n[:2], nonzeros=n[2])):
                return f"{file}, {n[0]} × {n[1]}, {differs}"
        wanted = PUBLISHED[name].files[0] if name in PUBLISHED else name
        return str(file or how_to_get(name).removeprefix("mpi-compress ") or f"put {wanted} into ./data; no command fetches it")

    samples = {name: f"{known.samples:,}" if known.samples else "part of a set" for name, known in KNOWN.items()}
    rows = [[name, f"{samples[name]:>13s} × {known.dim:,}", where(name)] for name, known in KNOWN.items()]
    rows += [[name, published.size, where(name)] for name, published in PUBLISHED.items()]
    sizes = {name: generator().size() for name, generator in generators.items()}
    rows += [[name, f"{n[0]:>13,} × {n[1]:,}" if n else "by its parameters", "generated"] for name, n in sizes.items()]
    say(*shown(sys.stdout, ("name", "size", "where it is"), rows, ("size",)))
    return 0


def act_get(options: Namespace) -> int:
    for name in options.names:
        print(fetch.get(name, options.url, options.quiet, ignore if options.quiet else print_line))
    return 0


def act_make(options: Namespace) -> int:
    if options.generator.lower().endswith(".csv"):
        return _convert(Path(options.generator), key_values(options.parameters), options.file)
    if options.generator.lower().endswith((".npz", ".npy")) or Path(options.generator).is_file():
        what = "a generator or a CSV file is required; jobs read LIBSVM text: [data] path = FILE, test = ANOTHER"
        save = 'in Python mc.data.save(X, y, "NEW.libsvm", test=0.2) writes both from arrays'
        raise UserError(f"data make: {options.generator}: {what}; {save}")
    table = DataTable(generator=options.generator, parameters=key_values(options.parameters))
    generator = table.build_generator()
    if options.file is None:
        data = open_data(table, Path(), Split(), "number" if generator.real_labels else "sign", quiet=False)
        say(f"{data.file}: {data.n_samples} samples, d = {data.dim}, {data.nonzeros} nonzeros")
    else:
        say(f"{options.file}: {write(options.file, generator.chunks())} samples")
    return 0


def _convert(path: Path, keys: dict[str, Any], target: Path | None) -> int:
    """Write a CSV file as LIBSVM text, and print what became of its columns."""
    for key in keys:
        if key not in (known := ("label", "test", "seed")):
            raise UserError(f"data make: {nearest(key, known, 'key')}")
    if target is not None and target.suffix.lower() == ".csv":
        raise UserError(f"-o {target}: what is written is LIBSVM text; name it FILE.libsvm")
    table = read_csv(path, keys.get("label", -1))
    files = save(table.X, table.y, target or path.with_suffix(".libsvm"), keys.get("test", 0.0), keys.get("seed", 0))
    names = ", ".join(table.features[:8]) + ", …" * (len(table.features) > 8)
    say(
        f"{path}: {table.y.size} samples, d = {len(table.features)}: {names}",
        *(f"  {remark}" for remark in table.remarks),
        *[f"  labels are those of the last column, {table.label}; label=NAME takes another"] * ("label" not in keys),
        *(f"  label {word} is {number}" for word, number in table.classes.items()),
    )
    norms = [norm for norm in scipy.sparse.linalg.norm(table.X, axis=0) if norm]
    if norms and (ratio := max(norms) / min(norms)) > _UNLIKE:
        say(f'  columns differ {ratio:.0e}-fold in size, which slows all methods; [data] normalize = "columns" makes them alike')
    say(f'  [data] path = "{files[0]}"' + f', test = "{files[-1]}"' * (len(files) > 1))
    return 0


def act_info(options: Namespace) -> int:
    file = find_file(options.file)
    how = DataTable(name=options.file).build_format(Path()) if options.file in PUBLISHED else None
    found = contents_of(file, how, options.file)
    length, norm = found.lengths, found.norms
    share = length.mean() / max(1, found.features)
    say(
        str(file),
        f"  samples    {length.size}",
        f"  features   {found.features}, the largest index" + (f" ({found.published})" if found.published else ""),
        f"  nonzeros   {length.sum()}: {length.min()} to {length.max()} a sample, mean {length.mean():.4g}, {share:.3%} of all",
    )
    if length.any():
        low, high = found.range
        say(f"  values     {low:.6g} to {high:.6g}; samples have norms from {norm.min():.6g} to {norm.max():.6g}")
    ordered = sorted(found.labels)
    each = "; ".join(f"{label:g}: {found.labels[label]}" for label in ordered)
    two = "; jobs of two classes need positive = […]" * (2 < len(ordered) <= 20)
    say(f"  labels     {each if len(ordered) <= 20 else f'{len(ordered)} of them: {listed(ordered)}'}{two}")
    if len(ordered) == 2 and length.any() and options.file not in PUBLISHED:
        say(f"  logistic   {_of_logistic(options.file, length.sum() + 20 * found.features, norm)}")
    say(f"  SHA-256    {digest(file)}")
    return 0


def _of_logistic(file: str, size: float, norms: NDArray[Any]) -> str:
    """The constants of the logistic loss that papers print: L and f* with mu = 1e-4 L, and the mean smoothness of one sample."""
    of_one = f"mean L_i of single samples {(norms**2).mean() / 4:.6g}"
    if size > _SOLVED_UP_TO:
        return f"{of_one}; `mpi-compress data solve {file}` computes L and f*"
    try:
        problem, best = solve(_problem_alone(file, {}))
    except UserError as error:
        return f"{of_one}; f* is not known: {error}"
    return f"L {problem.L - problem.mu:.6g}, {of_one}, f* {best.f:.6g} with mu = 1e-4 L"


def act_solve(options: Namespace) -> int:
    is_job, seen = options.file.endswith(".toml"), set()
    if is_job and options.settings:
        raise UserError(f"{options.settings[0]}: a job states its problems itself")
    for spec in load_job(options.file).runs if is_job else [_problem_alone(options.file, key_values(options.settings))]:
        begun = time.perf_counter()
        problem, best = solve(spec)
        key = (problem.data.file, repr(problem.loss), problem.mu)
        if key not in seen:
            seen.add(key)
            say(*_solved(problem, best, time.perf_counter() - begun))
    return 0


def _problem_alone(given: str, keys: dict[str, Any]) -> RunSpec:
    """A run of no rounds on a file or a set."""
    file = find_file(given)
    source = {"name": given} if given in {*KNOWN, *PUBLISHED} else {"path": str(file)}
    objective = {k: v for k, v in keys.items() if k in parameters(ObjectiveTable)}
    data = {k: v for k, v in keys.items() if k not in objective}
    objective |= {} if {"mu", "lambda2"} & {*keys} else {"mu": "1e-4 L"}
    tables = {"data": source | data, "objective": objective, "algorithm": {"name": "gd", "step": 1.0}, "stop": {"rounds": 0}}
    return parse_job(tables, "solve", Path(), {}).runs[0]


def _solved(problem: Problem, best: Optimum, seconds: float) -> Iterator[str]:
    data = problem.data
    yield f"{data.title}: {data.n_samples} samples, d = {problem.dim}, {problem.loss.name}"
    kappa = problem.L / problem.mu if problem.mu else np.inf
    smooth = f"{problem.L - problem.mu:.10g} of the data part, mu {problem.mu:.6g}, kappa {kappa:.6g}"
    yield f"  L     {f'none, the loss is not smooth; mu {problem.mu:.6g}' if np.isnan(problem.L) else smooth}"
    if not best.attained:
        yield f"  f*    {best.f:.15g}, {INFIMUM_IN_PART if best.f else INFIMUM}: there is no x*"
        return
    measure = solver_of(problem.loss).measure
    yield f"  f*    {best.f:.15g} to {best.accuracy:.1g}; {measure} {best.reached:.1g} of what it was at 0"
    yield f"  |x*|  {np.linalg.norm(best.x):.6g}, {np.count_nonzero(best.x)} nonzeros; {seconds:.1f} s"
    yield f"  kept  {cache_folder() / 'data'}{os.sep}{data.file.stem}-…"
