"""Many results as one table, a row for each of their rows, with the settings in which they differ; and where two first differ."""

import glob
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from mpi_compress.core.errors import UserError
from mpi_compress.core.progress import print_line
from mpi_compress.results.files import TRIALS, below
from mpi_compress.results.reader import Run, read
from mpi_compress.results.settings import of_several_inputs, settings_of, varying
from mpi_compress.results.tuning import in_words

Kind = Literal["polars", "pandas", "dict"]
_KINDS: tuple[Kind, ...] = ("polars", "pandas", "dict")
BIT_FOR_BIT = "equal, bit for bit"
_FIRST = ("loss", "wire_bits_up", "wire_bits_down")  # of the columns in which two results differ
_DERIVED = ("squared_grad_norm", "seconds")


def load(results: str | Path | Run | Iterable[str | Path | Run], as_: Kind | None = None) -> Any:
    """All rows of many results as one table.

    Its columns are `job`, `label` and `seed`; the settings in which the results differ, by dotted key (`algorithm.step`,
    `up.compressor.k`, `up.compressor.name`), as their jobs write them; what [tune] found, `tuned`, and the numbers
    that formulas came to, such as `step`; where results of equal settings read other data or code of the user's, hashes of these,
    `inputs`; all columns of their traces, `squared_grad_norm` and `seconds`. What a result does not have is null (None in a dict).
    Left out are results that are being written, trials of [tune] unless it says "tuning", and files that cannot be read, each with
    a line.

    Args:
        results: a pattern such as ``"results/**"``, a folder, a file, a result that was read; or several of these.
        as_: "polars" or "pandas" for a DataFrame, "dict" for a dict of lists. None: the first of these that is installed.

    Raises:
        UserError: nothing is found, no file can be read, or the library is not installed.
    """
    if as_ not in (None, *_KINDS):
        raise UserError(f"load: as_ = {as_!r} was given; it should be one of {', '.join(_KINDS)}")
    here = [kind for kind in _KINDS if kind == "dict" or find_spec(kind)]
    chosen = as_ or here[0]
    if chosen not in here:
        raise UserError(f"load: as_ = '{chosen}' needs {chosen}: pip install 'mpi-compress[{chosen}]'")
    columns = table(_found(results))
    kinds_may_mix = {"strict": False} if chosen == "polars" else {}
    return columns if chosen == "dict" else import_module(chosen).DataFrame(columns, **kinds_may_mix)


def table(runs: Sequence[Run]) -> dict[str, list[Any]]:
    """The columns of `load`."""
    several = of_several_inputs(runs)
    settings = [settings_of(run.written) | {"inputs": " ".join(run.inputs) if run.label in several else None} for run in runs]
    differing = ["seed", *varying(settings)]
    found = [run.evaluated | ({"tuned": _value(run.tuned["value"])} if run.tuned else {}) for run in runs]
    measured = chain.from_iterable([*found, *(run.trace for run in runs)])
    names = ["job", "label", *differing, *measured, *_DERIVED]
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for run, setting, numbers in zip(runs, settings, found, strict=True):
        fixed = {**numbers, "job": _job_of(run.file), "label": run.label, **{key: setting.get(key) for key in differing}}
        held = {**run.trace, **{name: run.column(name) for name in _DERIVED if run.has(name)}}
        for name, column in columns.items():
            column += held[name].tolist() if name in held else [fixed.get(name)] * run.rows
    return columns


def _value(tuned: Any) -> Any:
    """A value that [tune] found, those of several parameters as one text."""
    return in_words(tuned) if isinstance(tuned, Mapping) else tuned


def _found(results: Any) -> list[Run]:
    """The results that are asked for, in the order of their files."""
    if isinstance(results, str | Path | Run):
        results = [results]
    found, unread = dict[Path, Run](), dict[Path, UserError]()
    for each in results:
        if isinstance(each, Run):
            found.setdefault(each.file, each)
            continue
        if not (files := _matching(str(each))):
            raise UserError(f"load: no results (*.h5) match '{each}'")
        for file in files:
            if file not in found | unread and (file.parent.name != TRIALS or TRIALS in str(each)):
                try:
                    found[file] = read(file)
                except UserError as error:
                    unread[file] = error
    if not found:
        raise next(iter(unread.values()), UserError("load: no results were given"))
    for why in unread.values():
        print_line(f"load: {why}; it is left out")
    return list(found.values())


def _matching(pattern: str) -> list[Path]:
    """The result files that a pattern, a folder or a file names."""
    if os.path.isdir(pattern):
        pattern = os.path.join(glob.escape(pattern), "**")
    elif os.path.exists(pattern):
        return [Path(pattern)]
    return sorted(Path(f) for f in glob.glob(pattern, recursive=True) if f.endswith(".h5") and not os.path.isdir(f))


def _job_of(file: Path) -> str:
    """The job's name: the folders below the last one called `results`; else the file's folder."""
    path = Path(os.path.abspath(file))
    return "/".join(below(path, "results")) or path.parent.name


def difference(one: Run, other: Run) -> Iterator[str]:
    """Lines that say where two results first differ, compared bit for bit; /timing is left out."""
    parted, tables = list[tuple[int, str]](), ("trace", "workers", "theory")  # /timing is measured, and never compared
    mine, others = ({f"/{table}/{column}" for table in tables for column in getattr(run, table)} for run in (one, other))
    for run, alone in (one, mine - others), (other, others - mine):
        if alone:
            yield f"only in {run.file}: {', '.join(sorted(alone))}"
    for table in tables:
        a, b = getattr(one, table), getattr(other, table)
        for column in sorted(set(a) & set(b), key=lambda name: (name not in _FIRST, name)):
            n = min(len(a[column]), len(b[column]))
            row = next((i for i in range(n) if a[column][i].tobytes() != b[column][i].tobytes()), None)
            if row is not None:
                parted.append((row, f"/{table}/{column}: {a[column][row]} against {b[column][row]}"))
    if parted:
        first = min(row for row, _ in parted)
        yield f"they part in record {first} (round {one.trace['round'][first]}):"
        yield from (f"  {text}" for row, text in parted if row == first)
    elif one.rows != other.rows:
        yield f"equal in all records that both have; {one.rows} records against {other.rows}"
    elif len({None if run.x is None else run.x.tobytes() for run in (one, other)}) > 1:
        yield "all records are equal, the last points are not"
    else:
        yield f"{BIT_FOR_BIT}: {one.rows} records{' of the columns that both have' if mine != others else ''}"
