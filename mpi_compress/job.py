"""A job file: one TOML file = one figure = some runs, checked whole before anything runs."""

import copy
import hashlib
import itertools
import json
import re
import sys
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import tomli_w

from mpi_compress import claims
from mpi_compress.algorithms import Algorithm, algorithms
from mpi_compress.checkpoint import Every
from mpi_compress.codecs import codecs
from mpi_compress.compressed import Vector
from mpi_compress.compressors import compressors
from mpi_compress.costs import CostModel, costs
from mpi_compress.datasets import generators
from mpi_compress.datasets.table import DataTable, content_id, digest
from mpi_compress.errors import UserError, nearest
from mpi_compress.observer import Stop
from mpi_compress.registry import checked, import_plugin, parameters, source_of
from mpi_compress.results import read
from mpi_compress.tables import (
    NOT_OF_A_RUN,
    OF_A_RUN,
    Claim,
    FigureTable,
    LinkTable,
    LogTable,
    ObjectiveTable,
    PanelTable,
    StartTable,
    TuneTable,
    WorkersTable,
)


@dataclass(frozen=True)
class RunSpec:
    """One run of a job, all its parts built."""

    label: str
    index: int  # among the job's runs
    written: Mapping[str, Any]  # the tables as the user wrote them for this run
    folder: Path  # the job's own
    seed: int
    data: DataTable
    objective: ObjectiveTable
    workers: WorkersTable
    algorithm: Algorithm
    up: LinkTable
    down: LinkTable
    cost: CostModel
    start: StartTable
    stop: Stop
    log: LogTable
    checkpoint: Every
    tune: TuneTable | None
    where: str  # for error lines

    @property
    def run_id(self) -> str:
        """A hash of what decides the numbers: what the user wrote, but for layout and checkpoints, and what the files hold, those
        that parts of one's own are written in among them."""
        deciding = copy.deepcopy(dict(self.written))
        for key in ("checkpoint", "plugins"):
            deciding.pop(key, None)
        for key in ("exchange", "master"):
            deciding.get("workers", {}).pop(key, None)
        for key in ("name", "path", "test", "stand_in_for"):
            deciding["data"].pop(key, None)
        others = [] if (file := getattr(self.cost, "file", None)) is None else [digest(Path(file))]
        if (x := self.start_point) is not None:
            others.append(hashlib.sha256(x.tobytes()).hexdigest())
        parts = (self.algorithm, self.up.compressor, self.up.codec, self.down.compressor, self.down.codec, self.cost)
        others += dict.fromkeys(source for part in parts if (source := source_of(part)))
        text = json.dumps([deciding, content_id(self.data, self.folder), *others], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def start_point(self) -> Vector | None:
        """The last point of the result that the run starts from, if it does.

        Raises:
            UserError: there is no such result, or it has no last point.
        """
        at = self.start.at
        if at in ("zero", "optimum"):
            return None
        file = Path(_here_or_beside(at, self.folder))
        if not file.exists():
            raise UserError(f'start.at: {at}: there is no such file here or beside the job; a result, "zero" or "optimum" would do')
        try:
            x = read(file).x
        except UserError as error:
            raise UserError(f"start.at: {error}") from None
        if x is None:
            raise UserError(f"start.at: {at} has no last point")
        return x

    @property
    def real_labels(self) -> bool:
        """Whether labels are numbers to be fitted, and not two classes."""
        return self.objective.loss == "least-squares" and self.data.positive is None

    @property
    def trials(self) -> list["RunSpec"]:
        """The runs that settle what is to be tuned, one for each value."""
        assert self.tune is not None
        return [self._trial(value) for value in self.tune.values]

    def _trial(self, value: Any) -> "RunSpec":
        tune, written = self.tune, copy.deepcopy(dict(self.written))
        assert tune is not None
        del written["tune"]
        _put(written, tune.parameter, value)
        if tune.rounds is not None:
            written["stop"] = {"rounds": tune.rounds}
        if tune.seed is not None:
            written["seed"] = tune.seed
        trial = _run(f"{self.label}, {tune.parameter} = {_plain(value)}", self.index, written, self.folder, False)
        return replace(trial, where=self.where)

    def tuned(self, value: Any) -> "RunSpec":
        """This run with that value; its id is the one that it had."""
        assert self.tune is not None
        written = copy.deepcopy(dict(self.written))
        _put(written, self.tune.parameter, value)
        return replace(_run(self.label, self.index, written, self.folder, False), written=self.written, where=self.where)

    def toml(self) -> str:
        """A job of this run alone."""
        return tomli_w.dumps({**self.written, "run": [{"label": self.label}]})


@dataclass(frozen=True)
class Job:
    """A job file, read and checked."""

    name: str
    title: str
    paper: str
    runs: list[RunSpec]
    figure: FigureTable = field(default_factory=FigureTable)
    claims: list[Claim] = field(default_factory=list)

    @property
    def stand_ins(self) -> list[str]:
        """The sets that stand in for others."""
        return list(dict.fromkeys(r.data.shown for r in self.runs if r.data.stand_in_for))

    @property
    def titled_figure(self) -> FigureTable:
        """The figure under its title, with the sets that stand in for others."""
        return replace(self.figure, title="\n".join([self.figure.title or self.title, *(f"on {s}" for s in self.stand_ins)]))

    def only(self, label: str | None = None, index: int | None = None) -> "Job":
        """The same job with the runs of one label, or one run.

        Raises:
            UserError: there is no such run.
        """
        runs = self.runs
        if label is not None:
            runs = [r for r in runs if r.label == label]
            if not runs:
                raise UserError(f"--only: {nearest(label, [r.label for r in self.runs], 'run')}")
        if index is not None:
            if not 0 <= index < len(self.runs):
                raise UserError(f"--index: {index} was given; the runs of '{self.name}' go from 0 to {len(self.runs) - 1}")
            runs = [r for r in runs if r is self.runs[index]]
        return replace(self, runs=runs)


_EXACT = {"compressor": "identity", "codec": {"name": "auto", "search": "quick"}}


def load_job(
    file: str | Path,
    overrides: Mapping[str, Any] | None = None,
    only: str | None = None,
    index: int | None = None,
    full: bool = False,
) -> Job:
    """Read a job file and build every part of every run.

    Args:
        overrides: values by dotted key, such as {"stop.rounds": 100}, put into every run that is taken.
        only: take the runs of this label.
        index: take the run of this number.
        full: at full size, as the job's table [full] of values by dotted key says.

    Raises:
        UserError: one line with the file, the place in it, what was given, and what would do.
    """
    path = Path(file)
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such job file") from None
    except IsADirectoryError:
        raise UserError(f"{path}: is a folder; a job file is wanted") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: is no TOML: {error}") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        if full:
            tables = _at_full_size(tables)
        labels, numbers = None if only is None else {only}, None if index is None else {index}
        job = parse_job(tables, path.stem, path.parent, overrides or {}, labels, numbers).only(only, index)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    return replace(job, runs=[replace(r, where=f"{path}: {r.where}") for r in job.runs])  # for what only the data can tell


def parse_job(
    tables: Mapping[str, Any],
    name: str,
    folder: Path,
    overrides: Mapping[str, Any],
    labels: Collection[str] | None = None,
    numbers: Collection[int] | None = None,
) -> Job:
    """A job from its tables, as TOML gives them; `overrides` reach the runs of these labels and numbers, or all."""
    _known_keys(tables, (*NOT_OF_A_RUN, *OF_A_RUN), "")
    _import_plugins(tables.get("plugins", []), folder)
    title, paper = (tables.get(k, "") for k in ("title", "paper"))
    if not isinstance(title, str) or not isinstance(paper, str):
        raise UserError("title and paper should be text in quotes")
    plugins = {k: v for k, v in tables.items() if k == "plugins"}
    shared = {k: v for k, v in tables.items() if k in OF_A_RUN}
    runs: list[RunSpec] = []
    for own in _list_of_tables(tables, "run") or [{"label": title or name}]:
        label = own.get("label")
        if not isinstance(label, str) or not label:
            raise UserError('run: every [[run]] needs a label = "…", its name in figures')
        if not label.isprintable():
            key = "run: label" if "run" in tables else "title"
            raise UserError(f"{key} = {label!r} has characters that cannot be printed; write it without them, in one line")
        _known_keys(own, ("label", "grid", *OF_A_RUN), f'run "{label}"')
        written = copy.deepcopy({**plugins, **shared, **{k: v for k, v in own.items() if k in OF_A_RUN}})
        for point in _grid({**_grid_of(tables, ""), **_grid_of(own, f'run "{label}": ')}):
            suffix = ", ".join(f"{k.split('.')[-1]} = {_plain(v)}" for k, v in point.items() if k != "seed")
            name_in_figures = f"{label}, {suffix}" if suffix else label
            taken = (labels is None or name_in_figures in labels) and (numbers is None or len(runs) in numbers)
            run = copy.deepcopy(written)
            for key, value in {**point, **(overrides if taken else {})}.items():
                _put(run, key, value)
            _settle_data(run, folder, f'run "{label}": data')
            spec = _run(name_in_figures, len(runs), run, folder, len(tables.get("run", [])) > 1)
            if spec.tune is not None:
                _checked_trials(spec)
            runs.append(spec)
    all_labels = [r.label for r in runs]
    figure = _figure(tables.get("figure", {}), all_labels)
    claimed = claims.of_job(_list_of_tables(tables, "claim"), all_labels)
    if tables.get("full", {}) != {}:
        _check_full_size(tables, name, folder, overrides, labels, numbers)
    return Job(name, title or name, paper, runs, figure, claimed)


def _figure(table: Any, labels: Sequence[str]) -> FigureTable:
    """[figure] with its [[figure.panel]] tables, each of which shows a run."""
    if not isinstance(table, Mapping):
        raise UserError(f"figure: {table!r} was given; it should be a table, [figure]")
    panels = [checked(PanelTable, p, f"figure.panel {i + 1}") for i, p in enumerate(_list_of_tables(table, "panel", "figure."))]
    for i, panel in enumerate(panels):
        for pattern in panel.runs:
            if not any(replace(panel, runs=[pattern]).shows(label) for label in labels):
                raise UserError(f"figure.panel {i + 1}.runs: {nearest(pattern, labels, 'run')}")
    return replace(checked(FigureTable, {k: v for k, v in table.items() if k != "panel"}, "figure"), panel=panels)


def _run(label: str, index: int, written: dict[str, Any], folder: Path, named: bool) -> RunSpec:
    at = f'run "{label}": ' if named else ""

    def table(key: str) -> dict[str, Any]:
        value = written.get(key, {})
        if not isinstance(value, Mapping):
            raise UserError(f"{at}{key}: {value!r} was given; it should be a table, [{key}]")
        return dict(value)

    as_written = written
    seed = written.get("seed", 0)
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise UserError(f"{at}seed: {seed!r} was given; it should be a whole number from 0 on")
    tune = checked(TuneTable, table("tune"), f"{at}tune") if "tune" in written else None
    if tune is not None and _lacks(written, tune.parameter):
        written = copy.deepcopy(written)
        _put(written, tune.parameter, tune.values[0])
    for key in ("data", "algorithm", "stop"):
        if key not in written:
            raise UserError(f"{at}{key}: the table [{key}] is missing")
    algorithm = algorithms.build(table("algorithm"), f"{at}algorithm")
    cost = table("cost") or {"model": "payload"}
    if "model" not in cost or "name" in cost:
        raise UserError(f"{at}cost: model = … is needed, one of: {', '.join(costs)}")
    if isinstance(cost.get("file"), str):
        cost["file"] = _here_or_beside(cost["file"], folder)
    return RunSpec(
        label=label,
        index=index,
        written=as_written,
        folder=folder,
        seed=seed,
        data=_data(table("data"), f"{at}data"),
        objective=checked(ObjectiveTable, table("objective"), f"{at}objective"),
        workers=checked(WorkersTable, table("workers"), f"{at}workers"),
        algorithm=algorithm,
        up=_link(table("up"), f"{at}up") if table("up") else _own_uplink(algorithm, at),
        down=_link(table("down") or algorithm.links.get("down") or _EXACT, f"{at}down"),
        cost=costs.build({"name" if k == "model" else k: v for k, v in cost.items()}, f"{at}cost"),
        start=checked(StartTable, table("start"), f"{at}start"),
        stop=checked(Stop, table("stop"), f"{at}stop"),
        log=checked(LogTable, table("log"), f"{at}log"),
        checkpoint=checked(Every, table("checkpoint"), f"{at}checkpoint"),
        tune=tune,
        where=at,
    )


def _own_uplink(algorithm: Algorithm, at: str) -> LinkTable:
    """The uplink of an algorithm where a job names none."""
    try:
        return _link(algorithm.links.get("up") or {"compressor": algorithm.compressor}, "up")
    except UserError:
        name = type(algorithm).name  # type: ignore[attr-defined]
        such = f'[up] with compressor = {{ name = "{algorithm.compressor}", k = "1%" }}'
        raise UserError(f"{at}up: {name} needs a compressor with its parameters, such as {such}") from None


def _here_or_beside(path: str, folder: Path) -> str:
    """A file that a job names: here, or else beside the job."""
    beside = folder / path
    return str(beside) if beside.exists() and not Path(path).exists() else path


def _checked_trials(spec: RunSpec) -> None:
    """Refuse a value that cannot be tried before anything is."""
    try:
        spec.trials  # noqa: B018
    except UserError as error:
        raise UserError(f"{spec.where}tune: {error}") from None


def _lacks(run: Any, key: str) -> bool:
    """Whether a dotted key is not there."""
    for name in key.split("."):
        if not isinstance(run, Mapping) or name not in run:
            return True
        run = run[name]
    return False


def _check_full_size(tables: Mapping[str, Any], name: str, folder: Path, *overriding: Any) -> None:
    """Refuse what [full] cannot mean, though only --full asks for it."""
    at_full_size = _at_full_size(tables)
    try:
        parse_job(at_full_size, name, folder, *overriding)
    except UserError as error:
        raise UserError(f"full: {error}") from None


def _at_full_size(tables: Mapping[str, Any]) -> dict[str, Any]:
    """A job's tables with what its [full] says in all runs, and with its [[full.run]] and [[full.claim]] tables."""
    full = tables.get("full", {})
    if not isinstance(full, Mapping):
        raise UserError(f'full: {full!r} was given; it should be a table, [full], of values such as "stop.rounds" = 1000')
    if not full:
        raise UserError('--full: the job has no table [full] that says what its full size is, such as "stop.rounds" = 1000')
    found = copy.deepcopy({k: v for k, v in tables.items() if k != "full"})
    for key in ("run", "claim"):
        if key in full:
            found[key] = [*_list_of_tables(found, key), *_list_of_tables(full, key, "full.")]
    for key, value in _leaves({k: v for k, v in full.items() if k not in ("run", "claim")}):
        head = key.partition(".")[0]
        if head not in OF_A_RUN:
            raise UserError(f"full: {nearest(head, OF_A_RUN, 'table')}")
        for table in (found, *(own for own in _list_of_tables(found, "run") if head in own)):
            _put(table, key, value)
    return found


def _leaves(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Values by dotted key."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _settle_data(run: dict[str, Any], folder: Path, where: str) -> None:
    """Where [data] names a set that is not here, put the first of its `stand-in` tables that is."""
    table = run.get("data")
    if not isinstance(table, dict) or "stand-in" not in table:
        return
    others = _list_of_tables(table, "stand-in")
    wanted = {k: v for k, v in table.items() if k != "stand-in"}
    title = _data(wanted, where).title
    choices = [wanted, *({**other, "stand_in_for": title} for other in others)]
    run["data"] = next((c for c in choices if _data(c, where).is_here(folder)), wanted)


def _data(table: dict[str, Any], where: str) -> DataTable:
    """[data]: keys that belong to its generator are the generator's parameters."""
    common = [k for k in parameters(DataTable) if k != "parameters"]
    name = table.get("generator")
    if name is None:
        return checked(DataTable, table, where) if "parameters" not in table else _unknown("parameters", common, where)
    if not isinstance(name, str) or name not in generators:
        raise UserError(f"{where}.generator: {nearest(str(name), generators, 'generator')}")
    own = parameters(generators[name])
    for key in table:
        if key not in own and key not in common:
            _unknown(key, [*common, *own], where)
    values = {k: v for k, v in table.items() if k in own}
    generators.build({"name": name, **values}, where)
    rest = {k: v for k, v in table.items() if k not in own}
    return checked(DataTable, {**rest, "parameters": values}, where)


def _link(table: dict[str, Any], where: str) -> LinkTable:
    _known_keys(table, ("compressor", "codec"), where)
    compressor = compressors.build(table.get("compressor", "identity"), f"{where}.compressor")
    spec = table.get("codec", compressor.codec)
    if isinstance(spec, Mapping) and "name" not in spec:
        spec = {"name": compressor.codec, **spec}
    codec = codecs.build(spec, f"{where}.codec")
    if not codec.writes(compressor.makes):
        fitting = [name for name in codecs if codecs[name]().writes(compressor.makes)]
        raise UserError(
            f"{where}.codec: '{codec.name}' cannot write what '{compressor.name}' makes; "  # type: ignore[attr-defined]
            f"these can: {', '.join(fitting)}"
        )
    return LinkTable(compressor, codec)


def _import_plugins(names: Any, folder: Path) -> None:
    """Import the user's own parts: modules beside the job, in the current folder, or installed."""
    if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
        raise UserError(f'plugins: {names!r} was given; it should be a list of module names, ["my_module"]')
    for place in (str(folder.resolve()), str(Path.cwd())):
        if names and place not in sys.path:
            sys.path.insert(0, place)
    for name in names:
        if not re.fullmatch(r"[\w-]+(\.[\w-]+)*", name):
            raise UserError(f'plugins: {name!r} was given; a module\'s name is wanted, such as "my_module" for my_module.py')
        try:
            import_plugin(name)
        except ModuleNotFoundError as error:
            raise UserError(f"plugins: no module '{error.name}' here, beside the job, or installed") from None
        except (Exception, SystemExit) as error:
            how = "ends the program" if isinstance(error, SystemExit) else "fails"
            said = " ".join(str(error).split())
            raise UserError(f"plugins: module '{name}' {how} on import: {type(error).__name__}: {said}") from error


def _grid_of(table: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    grid = table.get("grid", {})
    if not isinstance(grid, Mapping):
        raise UserError(f"{where}grid: {grid!r} was given; it should be a table of lists, such as {{ seed = [0, 1] }}")
    return grid


def _grid(table: Any, prefix: str = "") -> list[dict[str, Any]]:
    """All points of [grid]: dotted keys, each with a list of values."""
    axes: dict[str, list[Any]] = {}

    def walk(node: Any, key: str) -> None:
        if isinstance(node, Mapping):
            for k, v in node.items():
                walk(v, f"{key}.{k}" if key else k)
        elif not isinstance(node, list) or not node:
            raise UserError(f"grid.{key}: {node!r} was given; it should be a list of values, at least one")
        elif key.split(".")[0] not in OF_A_RUN:
            raise UserError(f"grid: {nearest(key.split('.')[0], OF_A_RUN, 'table')}")
        else:
            axes[key] = node

    walk(table, prefix)
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def _put(run: dict[str, Any], key: str, value: Any) -> None:
    """Set a dotted key; tables on the way are made where they are missing."""
    *tables, last = key.split(".")
    if (tables or [last])[0] not in OF_A_RUN:
        raise UserError(f"{key}: {nearest((tables or [last])[0], OF_A_RUN, 'table')}")
    for name in tables:
        inner = run.setdefault(name, {})
        if isinstance(inner, str):  # the short form of a part, codec = "fixed"
            inner = run[name] = {"name": inner}
        if not isinstance(inner, dict):
            raise UserError(f"{key}: {name} is {inner!r} and no table")
        run = inner
    run[last] = value


def _list_of_tables(tables: Mapping[str, Any], key: str, within: str = "") -> list[dict[str, Any]]:
    value = tables.get(key, [])
    if not isinstance(value, list) or not all(isinstance(v, dict) for v in value):
        raise UserError(f"{within}{key}: should be tables, each headed [[{within}{key}]]")
    return value


def _known_keys(table: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in known:
            _unknown(key, list(known), where)


def _unknown(key: str, known: list[str], where: str) -> Any:
    raise UserError(f"{where + ': ' if where else ''}{nearest(key, known, 'key')}")


def _plain(value: Any) -> str:
    """A value as labels have it."""
    return value if isinstance(value, str) and value.isprintable() else json.dumps(value)
