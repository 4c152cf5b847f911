"""Units of columns; what costs are counted in depends on a run's cost model."""

from collections.abc import Mapping, Sequence
from typing import Any

from mpi_compress.core.errors import UserError
from mpi_compress.messages.costs import costs
from mpi_compress.results.columns import column_of
from mpi_compress.results.reader import Run
from mpi_compress.results.settings import settings_of

COSTS = ("cost_up", "cost_down", "predicted_cost")  # what is counted as a run's cost model says


def unit_of(column: str, runs: Sequence[Run]) -> str:
    """The unit of a column; of costs that of the runs' cost models, "" where they differ in it or do not say."""
    if column not in COSTS:
        return column_of(column).unit
    units = set()
    for run in runs:
        table = _table(run, "down" if column == "cost_down" else "up")
        name = str(table.pop("model"))
        try:  # a cost model may not be here, or not be known without a file that is gone
            units.add(costs.build({"name": name, **table}, "cost").unit if name in costs else "")
        except UserError:
            units.add("")
    return units.pop() if len(units) == 1 else ""


def charged(column: str, runs: Sequence[Run]) -> str:
    """Of what a column of costs is: "by the papers' formula" or "of the bytes sent", or both; "" for another column."""
    way = "down" if column == "cost_down" else "up"
    models = {str(_table(run, way)["model"]) for run in runs if column in COSTS}
    kinds = {"of the bytes sent" if costs[name].on_wire else "by the papers' formula" for name in models if name in costs}
    return " and ".join(sorted(kinds))


def label_of(column: str, runs: Sequence[Run]) -> str:
    """The label of a column of these runs, of costs with what they are of: "uplink cost, by the papers' formula"; of the model's
    clock with the rule of arrival that they share: "time by the model, wait = 6"."""
    rules = {*map(arrivals, runs if column == "model_seconds" else ())}
    shared = rules.pop() if len(rules) == 1 else ""
    return ", ".join(filter(None, [column_of(column).whole_label, charged(column, runs), shared]))


def arrivals(run: Run) -> str:
    """Which messages a run's master waits for, as its [time] has it: "wait = 6"; "" where it waits for all."""
    others = ("time.compute", "time.per")
    given = [each for each in settings_of(run.written).items() if each[0].startswith("time.") and not each[0].startswith(others)]
    return ", ".join(f"{key[5:]} = {value}" for key, value in given)


def model_of(run: Run) -> str:
    """A run's cost model as its job writes it, such as "packet, c1 = 128 B, pmax = 128 B"; "payload" where it does not. Where up
    and down differ, both, such as "affine, c0 = 1 kB up, payload down"."""
    return cost_text(run.written.get("cost") or {})


def counted_by(column: str, run: Run) -> str:
    """What counts a column of a run: of costs "costs by packet, c1 = 128 B", of the model's clock "on links of 1 Mbit/s,
    compute.law = linear, compute.unit = 1 ms for a round's work"; "" for another column."""
    if column != "model_seconds":
        return f"costs by {model_of(run)}" if column in COSTS else ""
    written = settings_of(run.written)
    computing = [f"{key[5:]} = {value}" for key, value in written.items() if key.startswith("time.compute")]
    if "time.compute.law" in written:
        per = written.get("time.per", "gradient")
        computing[-1] += " for a round's work" if per == "gradient" else f" for each {per}"
    links = [f"on links of {run.attrs['links']}"] if "links" in run.attrs else []
    return ", ".join(links + computing)


def cost_text(written: Mapping[str, Any]) -> str:
    """The same by the table [cost]."""
    texts = []
    for way in ("up", "down"):
        table = _of(written, way)
        texts.append(", ".join([str(table["model"]), *(f"{key} = {value}" for key, value in table.items() if key != "model")]))
    return texts[0] if texts[0] == texts[1] else f"{texts[0]} up, {texts[1]} down"


def named_model(runs: Sequence[Run]) -> str:
    """The name of the cost model that all of these runs share, or ""."""
    names = {str(_table(run, way)["model"]) for run in runs for way in ("up", "down")}
    return names.pop() if len(names) == 1 else ""


def _table(run: Run, way: str) -> dict[str, object]:
    """The table of a run's cost model in a direction."""
    return _of(run.written.get("cost") or {}, way)


def _of(written: Mapping[str, Any], way: str) -> dict[str, object]:
    own = written.get(way) or {key: value for key, value in written.items() if key not in ("up", "down")}
    return {"model": "payload", **own}
