"""`mpi-compress data list | get | make | info | solve`: sets fetched, generated, described, and their optima computed."""

import argparse
import os
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mpi_compress.core.errors import UserError
from mpi_compress.core.progress import tell
from mpi_compress.problem.datasets import fetch, generators, libsvm
from mpi_compress.problem.datasets.cache import cache_folder, replace
from mpi_compress.problem.datasets.known import KNOWN, how_to_get
from mpi_compress.problem.datasets.labels import listed
from mpi_compress.problem.datasets.store import open_data
from mpi_compress.problem.datasets.table import DataTable, digest, find_set


def add_to(commands: Any) -> None:
    """The subcommands of `data`."""
    data = commands.add_parser("data", help="fetch, generate and describe data sets").add_subparsers(
        metavar="list|get|…", required=True
    )

    listing = data.add_parser("list", help="the sets and generators there are, and where a set is found")
    listing.set_defaults(command=_list)

    get = data.add_parser("get", help="fetch sets of the LIBSVM collection into the user's cache folder")
    get.add_argument("names", nargs="+", metavar="NAME")
    get.add_argument("--from", dest="url", metavar="URL", help="another address of the collection (or $MPI_COMPRESS_DATA_URL)")
    get.add_argument("--quiet", action="store_true", help="no progress")
    get.set_defaults(command=_get)

    make = data.add_parser("make", help="generate a set now and keep it, as a job that names it would, or write it as LIBSVM text")
    make.add_argument("generator", metavar="GENERATOR", help="one of: " + ", ".join(generators))
    make.add_argument("parameters", nargs="*", metavar="KEY=VALUE", help="its parameters, such as samples=1000")
    make.add_argument("-o", dest="file", metavar="FILE", help="LIBSVM text; .gz, .bz2 and .xz are compressed")
    make.set_defaults(command=_make)

    info = data.add_parser("info", help="what is in a file of LIBSVM text, or in a set")
    info.add_argument("file", metavar="FILE|NAME")
    info.set_defaults(command=_info)

    solve = data.add_parser("solve", help="L, x* and f* of a set, or of all problems of a job, computed and kept")
    solve.add_argument("file", metavar="FILE|NAME|JOB.toml")
    solve.add_argument("settings", nargs="*", metavar="KEY=VALUE", help='of [data] and [objective], such as loss=hinge mu="1e-4 L"')
    solve.set_defaults(command=_solve)


def settings(pairs: list[str], option: str = "", example: str = "samples=1000") -> dict[str, Any]:
    """KEY=VALUE … with TOML values; what is no TOML is text. `option` and `example` are for the error.

    Raises:
        UserError: one without "=".
    """
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise UserError(f"{option}{pair}: KEY=VALUE is wanted, such as {example}")
        try:
            found[key] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            found[key] = text
    return found


def _list(options: argparse.Namespace) -> int:
    for name, known in KNOWN.items():
        try:
            where = str(find_set(name, "data"))
        except UserError:
            where = how_to_get(name) or "not here"
        size = f"{known.samples:,}" if known.samples else "part of a set"
        print(f"{name:22s} {size:>13s} × {known.dim:<11,} {where}")
    for name, generator in generators.items():
        size = "by its parameters"
        if (given := generator().size()) is not None:
            size = f"{given[0]:>13,} × {given[1]:<11,}"
        print(f"{name:22s} {size} generated")
    return 0


def _get(options: argparse.Namespace) -> int:
    for name in options.names:
        file = fetch.get(name, options.url, options.quiet, _silent if options.quiet else tell)
        print(file)
    return 0


def _make(options: argparse.Namespace) -> int:
    table = DataTable(generator=options.generator, parameters=settings(options.parameters))
    generator = table.build_generator()
    if options.file is None:
        data = open_data(table, Path(), "contiguous", 0, generator.real_labels)
        print(f"{data.file}: {data.n_samples} samples, d = {data.dim}, {data.nonzeros} nonzeros")
        return 0
    target, rows = Path(options.file), 0

    def fill(part: Path) -> None:
        nonlocal rows
        with libsvm.open_text(part, "wb", target.suffix) as out:
            for samples, labels in generator.chunks():
                libsvm.write(out, samples, labels)
                rows += labels.size

    replace(target, fill)
    print(f"{target}: {rows} samples")
    return 0


def _info(options: argparse.Namespace) -> int:
    for line in _described(_file(options.file)):
        print(line)
    return 0


def _file(given: str) -> Path:
    path = Path(given)
    if path.exists():
        if not path.is_file():
            raise UserError(f"{path}: is {'a folder' if path.is_dir() else 'no plain file'}; a file of LIBSVM text is wanted")
        return path
    if path.suffix in libsvm.SUFFIXES[1:] or len(path.parts) > 1:
        raise UserError(f"{path}: there is no such file")
    return find_set(given, "data")


def _described(file: Path) -> Iterator[str]:
    """What is in a file, read in blocks."""
    counts: dict[float, int] = {}
    lengths, norms, largest, low, high = [], [], 0, np.inf, -np.inf
    for _, a, labels in libsvm.read_blocks(file):
        for label, count in zip(*np.unique(labels, return_counts=True), strict=True):
            counts[float(label)] = counts.get(float(label), 0) + int(count)
        lengths.append(np.diff(a.indptr))
        norms.append(np.sqrt(np.asarray(a.multiply(a).sum(axis=1)).ravel()))
        if a.nnz:
            largest = max(largest, int(a.indices.max()) + 1)
            low, high = min(low, a.data.min()), max(high, a.data.max())
    if not counts:
        raise UserError(f"{file}: holds no samples")
    length, norm = np.concatenate(lengths), np.concatenate(norms)
    name = file.name.removesuffix(file.suffix) if file.suffix in libsvm.SUFFIXES else file.name
    yield str(file)
    yield f"  samples    {length.size}"
    published = KNOWN[name].mismatch(length.size, largest) or "as published" if name in KNOWN else ""
    yield f"  features   {largest}, the largest index" + (f" ({published})" if published else "")
    share = length.mean() / max(1, largest)
    yield f"  nonzeros   {length.sum()}: {length.min()} to {length.max()} a row, mean {length.mean():.4g}, {share:.3%} of all"
    if largest:
        yield f"  values     {low:.6g} to {high:.6g}; rows have norms from {norm.min():.6g} to {norm.max():.6g}"
    ordered = sorted(counts)
    if len(ordered) <= 20:
        yield "  labels     " + "; ".join(f"{label:g}: {counts[label]}" for label in ordered)
    else:
        yield f"  labels     {len(ordered)} of them: {listed(ordered)}"
    yield f"  SHA-256    {digest(file)}"


def _solve(options: argparse.Namespace) -> int:
    from mpi_compress.engine.problems import solve
    from mpi_compress.job.loading import load_job

    if options.file.endswith(".toml"):
        if options.settings:
            raise UserError(f"{options.settings[0]}: a job says itself what its problems are")
        specs = load_job(options.file).runs
    else:
        specs = [_problem_alone(options.file, settings(options.settings))]
    seen = set()
    for spec in specs:
        begun = time.perf_counter()
        problem, best = solve(spec)
        key = (problem.data.file, problem.loss, problem.mu)
        if key in seen:
            continue
        seen.add(key)
        print(f"{problem.data.title}: {problem.data.n_samples} samples, d = {problem.data.dim}, {problem.loss}")
        smooth = not np.isnan(problem.L)
        if smooth:
            kappa = problem.L / problem.mu if problem.mu else np.inf
            print(f"  L     {problem.L - problem.mu:.10g} of the data part, mu {problem.mu:.6g}, kappa {kappa:.6g}")
        else:
            print(f"  L     none, the loss is not smooth; mu {problem.mu:.6g}")
        what = "gradient" if smooth else "duality gap"
        print(f"  f*    {best.f:.15g} to {best.accuracy:.1g}; {what} {best.reached:.1g} of what it was at 0")
        print(f"  |x*|  {np.linalg.norm(best.x):.6g}, {np.count_nonzero(best.x)} nonzeros; {time.perf_counter() - begun:.1f} s")
        print(f"  kept  {cache_folder() / 'data'}{os.sep}{problem.data.file.stem}-…")
    return 0


def _problem_alone(given: str, keys: dict[str, Any]) -> Any:
    """A run of no rounds on a file or a set."""
    from mpi_compress.core.registry import parameters
    from mpi_compress.job.loading import parse_job
    from mpi_compress.job.tables import ObjectiveTable

    file = _file(given)
    source = {"name": given} if given in KNOWN else {"path": str(file)}
    objective = {"mu": "1e-4 L"} if not {"mu", "lambda2"} & set(keys) else {}
    objective |= {k: v for k, v in keys.items() if k in parameters(ObjectiveTable)}
    data = {k: v for k, v in keys.items() if k not in objective}
    tables = {"data": source | data, "objective": objective, "algorithm": {"name": "gd", "step": 1.0}, "stop": {"rounds": 0}}
    return parse_job(tables, "solve", Path(), {}).runs[0]


def _silent(_: str) -> None:
    pass
