"""One run of a job: from its tables to its parts, each checked."""

import hashlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import tomli_w

from mpi_compress.algorithms import Method
from mpi_compress.algorithms.steps import named_by
from mpi_compress.core.errors import UserError, checked_at, placed
from mpi_compress.core.registry import checked, is_ours, record, with_inner
from mpi_compress.core.shipped import is_shipped
from mpi_compress.core.sources import file_of, source_of
from mpi_compress.job.dotted import value_at, with_values
from mpi_compress.job.methods import downlink_of, method_of, uplink_of
from mpi_compress.job.problems import data_table, loss_of, metrics_of, partition_of
from mpi_compress.job.stopping import Logged, check_tune, stop_of
from mpi_compress.job.tables import OF_A_RUN, Every, LinkTable, LogTable, ObjectiveTable, StartTable, Stop, Tables, WorkersTable
from mpi_compress.job.timing import TimeTable
from mpi_compress.job.tuning import TuneTable
from mpi_compress.messages.costs import CostModel, costs
from mpi_compress.messages.costs.base import files_of
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.computing import Computing
from mpi_compress.problem.datasets.cache import digest
from mpi_compress.problem.datasets.known import how_to_get
from mpi_compress.problem.datasets.labels import Labels
from mpi_compress.problem.datasets.table import DataTable, content_id, file_digests
from mpi_compress.problem.mean_loss import MeanLoss
from mpi_compress.problem.metrics import Metric
from mpi_compress.problem.partitions import Partition, Split
from mpi_compress.problem.penalties import Penalty, penalties
from mpi_compress.results.reader import read


@dataclass(frozen=True, repr=False)
class RunSpec:
    """One run of a job, all its parts built. It prints as one line."""

    label: str
    index: int  # among the job's runs
    written: Tables  # the tables as the user wrote them for this run
    folder: Path  # the job's own
    seed: int
    data: DataTable
    objective: ObjectiveTable
    loss: MeanLoss
    penalty: Penalty | None
    workers: WorkersTable
    partition: Partition
    algorithm: Method
    up: LinkTable
    down: LinkTable
    cost: CostModel
    time: TimeTable
    computing: Computing | None  # how long workers compute; None: it takes no time
    start: StartTable
    stop: Stop
    log: LogTable
    metrics: list[Metric]  # that [log] names
    checkpoint: Every
    tune: TuneTable | None
    slurm: Tables  # options of `submit`, of this run
    where: str  # for error lines
    overridden: Tables = field(default_factory=dict)  # by dotted key, what was set from outside the job, as by --set
    rounds_of_job: float = float("inf")  # of [stop] without what was set from outside
    asked: frozenset[str] = frozenset()  # words of the job's figures and claims, columns among them
    names: Sequence[str] = ()  # by which it is chosen: its label, and that of its [[run]] where [grid] adds to it
    papers_data: str = ""  # the set of the job's paper: that of its table [full], or its own; "": its claims are of others, or ours

    def __repr__(self) -> str:
        return f"RunSpec({self.label!r}, {self.algorithm.name}, {self.up.compressor.name}, seed {self.seed})"

    @property
    def missing(self) -> str:
        """Why its data are not known, such as "`rcv1` is not here: …", and with them its run_id; "" if they are here."""
        if self.data.is_here(self.folder):
            return ""
        return ": ".join(filter(None, [f"`{self.data.title}` is not here", how_to_get(self.data.name)]))

    @property
    def run_id(self) -> str:
        """A hash of what decides the numbers: the user's tables without layout and checkpoints, and the content of all files, the
        source of users' parts included; but not that of metrics, which decide a column of their own alone."""
        return self._id_of(self.written)

    def id_of_all(self, key: str, tuned: Tables | None) -> str:
        """A hash like `run_id` of all runs that differ in this key or table alone, each with the value that [tune] found for it;
        in [stop], where formulas or users' parts name the rounds, not in these."""
        values = self.tune.put(tuned["value"]) if tuned and self.tune else {}
        deciding = _without(with_values(self.written, values), key, "tune")
        if follows_rounds(self):
            deciding["rounds"] = self.stop.planned
        return self._id_of(deciding)

    def _id_of(self, written: Tables) -> str:
        deciding = _without(written, "checkpoint", "plugins", "slurm")
        deciding["data"] = _without(deciding["data"], "name", "path", "test")
        if "workers" in deciding:
            deciding["workers"] = _without(deciding["workers"], "exchange", "master", "patience")
        others = [digest(Path(file)) for file in files_of(self.cost)] if is_ours(self.cost) else []
        others += [digest(Path(self.time.file))] if self.time.file else []
        if (x := self.start_point) is not None:
            others.append(hashlib.sha256(x.tobytes()).hexdigest())
        others += dict.fromkeys(source for part in with_inner(self._places.values()) if (source := source_of(part)))
        text = json.dumps([deciding, content_id(self.data, self.folder), *others], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def marks(self) -> dict[str, str]:
        """What distinguishes its metrics from others of the same names, by column: the run id leaves their sources out."""
        return {m.column: hashlib.sha256(f"{m!r} {source_of(m)}".encode()).hexdigest()[:12] for m in self.metrics}

    @property
    def _places(self) -> dict[str, Any]:
        """The parts that decide its numbers, but for its data, by their places in a job."""
        return {
            "algorithm": self.algorithm, "up.compressor": self.up.compressor, "up.codec": self.up.codec,
            "down.compressor": self.down.compressor, "down.codec": self.down.codec, "cost": self.cost,
            **({"cost.down": self.cost.down} if self.cost.down else {}),
            "objective.loss": self.loss, "objective.penalty": self.penalty, "workers.partition": self.partition,
            **{f"stop.{rule.name}": rule for rule in self.stop.own},
        }  # fmt: skip

    @property
    def parts(self) -> list[Any]:
        """All its parts, those that others hold among them, but for its data."""
        return [*with_inner((*self._places.values(), *self.metrics))]

    @property
    def built(self) -> dict[str, Any]:
        """Every field of every part, but for those of its data, by the part's place in a job."""
        first = {"algorithm": self.algorithm, "down.by": getattr(self.algorithm, "by", None)}
        places = first | self._places | {f"log.metrics.{each.name}": each for each in self.metrics}
        return {place: record(part) for place, part in places.items() if part is not None}

    @property
    def own(self) -> list[Any]:
        """The user's own parts in this run."""
        return [*filter(self.owns, self.parts)]

    def owns(self, part: Any) -> bool:
        """True if a part of this run is the user's own."""
        return not is_ours(part)

    @property
    def data_kind(self) -> str:
        """Whether the data are the paper's; of a job that is not the package's, as it says itself."""
        if self.papers_data != self.data.title:
            return "other data"
        return "the paper's data" + ", as the job says" * (not is_shipped(self.folder))

    @property
    def data_shown(self) -> str:
        """The data's name, and in whose place they are."""
        return self.data.title + (f" in place of {self.papers_data}" if self.papers_data not in ("", self.data.title) else "")

    @property
    def rising(self) -> list[str]:
        """The columns of its metrics that rise."""
        return [metric.column for metric in self.metrics if metric.rises]

    @property
    def start_point(self) -> Vector | None:
        """The last point of the result that the run starts from, None if it starts elsewhere; UserError if there is none."""
        if (at := self.start.at) in (None, "zero", "random", "optimum"):
            return None
        file = Path(_here_or_beside(at, self.folder))
        if not file.exists():
            known = '"zero", "random" or "optimum"'
            raise UserError(f"start.at: {at}: there is no such file here or beside the job; a result, {known} would do")
        with placed("start.at: "):
            x = read(file).x
        if x is None:
            raise UserError(f"start.at: {at} has no last point")
        return x

    @property
    def source(self) -> tuple[DataTable, Path, Split, Labels]:
        """Its data, for `open_data`: [data], the job's folder, how rows are assigned to workers, and what labels are: those of a
        loss are two classes, or numbers to be fitted."""
        labels: Labels = "sign" if self.loss.of_margin and self.data.positive is not None else self.loss.labels
        return self.data, self.folder, Split(self.partition, self.workers.count, self.seed), labels

    def as_played(self, tuned: Tables | None) -> "RunSpec":
        """This run, under its id, with the value that [tune] found, as a result's `Run.tuned` has it; the run itself where nothing
        is tuned."""
        if not (tuned and self.tune):
            return self
        return replace(self.changed(self.tune.put(tuned["value"]), self.label), written=self.written)

    def changed(self, values: Tables, label: str, without: str = "") -> "RunSpec":
        """This run under another label, with other values by dotted key."""
        written = with_values(_without(self.written, without), values)
        found = run_spec(label, self.index, written, self.folder, False)
        kept = ("where", "overridden", "rounds_of_job", "asked", "papers_data")
        return replace(found, **{key: getattr(self, key) for key in kept})

    def toml(self) -> str:
        """A job of this run alone."""
        return tomli_w.dumps({**self.written, "run": [{"label": self.label}]})


_WAYS = ("up", "down")


def follows_rounds(spec: RunSpec) -> bool:
    """True if formulas or users' parts of a run name its rounds."""
    return "rounds" in named_by(spec.algorithm) or any("rounds" in source_of(part) for part in spec.own)


def outdated(spec: RunSpec, attrs: Mapping[str, Any]) -> list[str]:
    """The metrics of a run, by column, that a result does not have as they are now."""
    then = json.loads(attrs.get("metrics", "{}"))
    return [column for column, mark in spec.marks.items() if then.get(column) != mark]


def _without(table: Tables, *keys: str) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key not in keys}


def _table(written: Tables, key: str) -> dict[str, Any]:
    value = written.get(key, {})
    if not isinstance(value, Mapping):
        table = f'{{ name = "{value}" }}' if isinstance(value, str) and key in ("algorithm", "data") else f"[{key}]"
        raise UserError(f"{key}: {value!r} was given; it should be a table, {table}")
    return dict(value)


def _tuned(written: Tables) -> tuple[TuneTable | None, dict[str, dict[str, Any]]]:
    """[tune], if there is one, and all tables, with the first value to try if they have none."""
    tune = checked(TuneTable, _table(written, "tune"), "tune") if "tune" in written else None
    first = tune.put(tune.grid[0]) if tune else {}
    tried = with_values(written, {key: value for key, value in first.items() if value_at(written, key) is None})
    for key in ("data", "algorithm", "stop"):
        if key not in tried:
            raise UserError(f"{key}: the table [{key}] is missing")
    return tune, {key: _table(tried, key) for key in OF_A_RUN if key != "seed"}


def run_spec(label: str, index: int, written: Tables, folder: Path, named: bool) -> RunSpec:
    """A run from its tables as they are written, every part built; UserError with the place in the job and what would do.

    Args:
        folder: the job's own, where files that it names may also be.
        named: errors name the run.
    """
    where = f'run "{label}": ' if named else ""
    with placed(where):
        tune, tables = _tuned(written)
        algorithm = method_of(tables["algorithm"], tables["down"])
        objective = checked(ObjectiveTable, tables["objective"], "objective")
        workers, log = checked(WorkersTable, tables["workers"], "workers"), checked(LogTable, tables["log"], "log")
        data = data_table(tables["data"])
        cost, metrics = _cost(tables["cost"], folder), metrics_of(log)
        time = _time(tables["time"], workers, cost, folder)
        computing = time.computing(workers.count)
        logged = Logged(log, metrics, data, cost, computing, algorithm)
        if log.ns:
            logged.refuse("model_seconds", f"log.every = {log.every}")
        if tune:
            check_tune(tune, logged)
        return RunSpec(
            label, index, written, folder, _seed(written), data, objective,
            loss=loss_of(objective, data),
            penalty=None if objective.penalty is None else penalties.build(objective.penalty, "objective.penalty"),
            workers=workers, partition=partition_of(workers), algorithm=algorithm,
            up=uplink_of(tables["up"], algorithm), down=downlink_of(tables["down"], algorithm), cost=cost,
            time=time, computing=computing,
            start=checked(StartTable, tables["start"], "start"), stop=stop_of(tables["stop"], logged), log=log, metrics=metrics,
            checkpoint=checked(Every, tables["checkpoint"], "checkpoint"), tune=tune, slurm=tables["slurm"], where=where,
        )  # fmt: skip


def _seed(written: Tables) -> int:
    seed = written.get("seed", 0)
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise UserError(f"seed: {seed!r} was given; it should be a whole number from 0 on")
    return seed


def _cost(table: dict[str, Any], folder: Path) -> CostModel:
    """The cost model of [cost]: of both directions, or the uplink's with that of messages `down`."""
    of_both = _without(table, *_WAYS)
    given = {way: table[way] for way in _WAYS if way in table}
    if not given:
        return _cost_of(table or {"model": "payload"}, folder, "cost")
    if of_both and len(given) == 2:
        raise UserError(f"cost: up and down are given, and {next(iter(of_both))} of both: leave that out, or one of them")
    if missing := [way for way in _WAYS if way not in given and not of_both]:
        raise UserError(f"cost.{missing[0]}: {{ model = … }} is missing, or a model of both directions beside {next(iter(given))}")
    if wrong := [way for way, own in given.items() if not isinstance(own, Mapping)]:
        raise UserError(f"cost.{wrong[0]}: {given[wrong[0]]!r} was given; it should be a table, {{ model = … }}")
    up, down = (_cost_of(dict(given.get(way, of_both)), folder, f"cost.{way}" if way in given else "cost") for way in _WAYS)
    if (up.clock is None) != (down.clock is None):
        raise UserError(f"cost: {up.name} up and {down.name} down: both or none should be links that change with time")
    if up.unit and down.unit and up.unit != down.unit:
        raise UserError(f"cost: {up.name} up counts in {up.unit}, and {down.name} down in {down.unit}; give both in one unit")
    return up.bound_to(down=down)


def _cost_of(cost: dict[str, Any], folder: Path, where: str) -> CostModel:
    """A cost model from its table, which calls its name `model`."""
    if "model" not in cost or "name" in cost:
        raise UserError(f"{where}: model = … is needed, one of: {', '.join(costs)}")
    if isinstance(cost["model"], str) and is_ours(costs.get(cost["model"])) and isinstance(cost.get("file"), str):
        cost["file"] = _here_or_beside(cost["file"], folder)
    return costs.build({"name" if k == "model" else k: v for k, v in cost.items()}, where)


def _time(table: dict[str, Any], workers: WorkersTable, cost: CostModel, folder: Path) -> TimeTable:
    """[time]; UserError where it waits for what cannot be."""
    time = checked(TimeTable, table, "time")
    rule = checked_at("time", time.rule_of, workers.count)
    if rule:
        if time.compute is None and cost.clock is None:
            raise UserError("time.wait: without compute, and a [cost] of links, all workers arrive at once")
        if workers.participants:
            raise UserError("time.wait: the first to arrive, and workers.participate, those drawn: give one of them")
        if workers.exchange == "allgather":
            raise UserError(f'time.wait = {rule.wait}: with exchange = "allgather" each worker waits for all: "p2p" has a master')
    return replace(time, compute=_here_or_beside(time.file, folder)) if time.file else time


def _here_or_beside(path: str, folder: Path) -> str:
    """A file that a job names: here, or else beside the job."""
    beside = folder / path
    return str(beside) if beside.exists() and not Path(path).exists() else path


def inputs_of(spec: RunSpec) -> dict[str, str]:
    """A hash of each file of a run's data, and of the code of the user's own parts in each module, by their paths."""
    codes = dict[str, list[str]]()
    for part in filter(spec.owns, with_inner(spec._places.values())):
        name = type(part).__module__
        codes.setdefault(os.path.relpath(file_of(sys.modules[name])) if name in sys.modules else name, []).append(source_of(part))
    hashed = {file: hashlib.sha256("".join(dict.fromkeys(each)).encode()).hexdigest()[:12] for file, each in codes.items()}
    return file_digests(spec.data, spec.folder) | hashed
