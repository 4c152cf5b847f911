"""`mpi-compress show RESULT.h5…`"""

import json
import math
import os
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from mpi_compress.core.errors import UserError
from mpi_compress.core.progress import bits_text, count_text
from mpi_compress.core.tables import shown
from mpi_compress.core.terminal import say
from mpi_compress.evidence.comparison import amount
from mpi_compress.evidence.crossings import statements
from mpi_compress.evidence.lines import by_seed
from mpi_compress.evidence.method_status import LESS_NEEDED, endings
from mpi_compress.problem.datasets.said import line_of
from mpi_compress.results import bounds, theorem
from mpi_compress.results.columns import INFIMUM, INFIMUM_IN_PART, LEFT_OUT, OF_CLOCK, named
from mpi_compress.results.files import files_in
from mpi_compress.results.reader import COPY_OF, Run, read
from mpi_compress.results.settings import settings_of, varying
from mpi_compress.results.status import last_gap, status_of_run
from mpi_compress.results.summary import WARNINGS, no_f_star, split
from mpi_compress.results.targets import Target
from mpi_compress.results.tidy import BIT_FOR_BIT, difference
from mpi_compress.results.tuning import caveat, in_words


def act(options: Namespace) -> int:
    if len(options.results) == 2 and all(map(os.path.isdir, options.results)):
        found = [*_of_folders(*map(Path, options.results))]
        say(*(line for name, text in found for line in f"{name}: {text}".splitlines()))
        return 0 if all(text.startswith(BIT_FOR_BIT) for _, text in found) else 1
    runs = [*map(read, options.results if len(options.results) > 1 else files_in(options.results[0]))]
    asked = [name for name in ("csv", "split", "bounds") if getattr(options, name)]
    if len(runs) > 1 and asked:
        raise UserError(f"show --{asked[0]}: takes one result; without it several are compared")
    if options.csv:
        sys.stdout.writelines(runs[0].to_csv())
    elif asked:
        return _draw(runs[0], options)
    elif len(runs) > len(options.results):
        rows = [[*map(str, (run.file, run.attrs.get("data", ""), status_of_run(run).state)), *_last(run)] for run in runs]
        say(*shown(sys.stdout, ["result", "data", "status", "round", "loss"], rows, ("data",)))
    else:
        first = filter(None, dict.fromkeys(map(line_of, runs)))
        say(*first, *(summary(runs[0]) if len(runs) == 1 else _compared(runs)))
    return 0


def _last(run: Run) -> tuple[str, str]:
    return (f"{run.trace['round'][-1]:,}", f"{run.trace['loss'][-1]:.6g}") if run.rows else ("–", "–")


def _of_folders(one: Path, other: Path) -> Iterator[tuple[str, str]]:
    """For each run in two folders of results its job, label and seed, and whether the two are equal, or where they part."""
    found: dict[str, dict[Path, list[Run]]] = {}
    for folder in (one, other):
        for run in map(read, files_in(folder)):
            job = run.file.parent.relative_to(folder)
            name = f"{f'{job}: ' * (job != Path())}{run.label}, seed {run.written.get('seed', 0)}"
            found.setdefault(name, {}).setdefault(folder, []).append(run)
    for name, runs in found.items():
        for pair in zip_longest(runs.get(one, ()), runs.get(other, ())):
            if None in pair:
                yield name, f"is in {other if pair[0] is None else one} only"
            else:
                yield name, "\n".join(difference(*pair))


def _compared(runs: Sequence[Run]) -> Iterator[str]:
    """The settings in which results differ, how each ended, and where two of them first differ."""
    settings = [settings_of(run.written) for run in runs]
    if keys := varying(settings):
        rows = [[run.label, *(str(each.get(key, "–")) for key in keys)] for run, each in zip(runs, settings, strict=True)]
        yield from shown(sys.stdout, ["run", *keys], rows)
        yield ""
    for group in by_seed(runs):
        if len(group) > 1:
            yield from (f"{group[0].label}: {line}" for line in theorem.summary(group))
    if len(runs) > 2 or keys:
        heads, rows, notes = endings(runs)
        yield from (*shown(sys.stdout, heads, rows, LESS_NEEDED), *notes)
    ends = [float(run.trace["loss"][-1]) for run in runs if run.has("model_seconds") and run.status != "diverged"]
    if len(ends) > 1:  # on links of a model with a clock: which is fastest to the lowest loss that all of them reach
        yield from statements(runs, Target.of("loss", max(ends)))
    if len(runs) == 2:
        yield from difference(*runs)


def _draw(run: Run, options: Namespace) -> int:
    from mpi_compress.figures.of_run import draw_bounds, draw_split
    from mpi_compress.figures.plotting import save

    for option, draw in (("split", draw_split), ("bounds", draw_bounds)):
        if file := getattr(options, option):
            save(draw(run), file, option=f"--{option}")
            say(str(file))
    return 0


Line = tuple[str, str]
"""What a line of a summary is about, and what it says."""


def summary(run: Run) -> Iterator[str]:
    """What is in a result, and where its time and bits went."""
    yield f"{run.file}"
    if not run.has_checksums:
        yield "  no checksums: an earlier version wrote this file, and damage to it may not show"
    state = status_of_run(run).state
    ended = f"{state} ({why})" if (why := run.ended_by) else f"{state}"
    yield f"  {run.label}: {'; '.join(filter(None, (ended, *(said([run]) for said in WARNINGS))))}"
    yield from _aligned(_problem(run), _settings(run))
    yield from split(run)
    if not run.rows:
        yield "  no records yet"
        return
    last = {**{name: values[-1] for name, values in run.trace.items()}, "suboptimality": last_gap(run)}
    yield from _aligned(_reached(run, last), _found(run, last))
    yield from bounds.summary(run)
    yield from _aligned(("lyapunov", line) for line in theorem.summary([run]))
    yield from _aligned(_made(run))


def _aligned(*each: Iterator[Line]) -> Iterator[str]:
    return (f"  {name:9s} {text}" for lines in each for name, text in lines)


def _problem(run: Run) -> Iterator[Line]:
    a = run.attrs
    hosts = f"{count_text(a['n_workers'], 'worker')} on {count_text(a['n_ranks'], 'rank')}"
    yield "data", f"{a['data']}: {a['n_samples']} samples, d = {a['dim']}; {hosts}"
    L = f"L = {a['L']:.9g}" + (", an estimate" if a.get("L_source") == "estimate" else "")
    sources = {"lowest seen": "the lowest seen", "given": "given by the job", INFIMUM: INFIMUM, INFIMUM_IN_PART: INFIMUM_IN_PART}
    how = sources.get(a.get("f_star_source", ""), f"to {a['f_star_accuracy']:.1g}")
    unknown = "f* was left out; a table of suboptimality computes it" if a.get("f_star_source") == LEFT_OUT else no_f_star(run)
    optimum = unknown if math.isnan(a["f_star"]) else f"f* = {a['f_star']:.10g} ({how})"
    yield "problem", f"{L}{', mu included' if a['mu'] else ''}, mu = {a['mu']:.6g}, {optimum}"
    if "condition" in a:
        yield "theory", a["condition"]


def _settings(run: Run) -> Iterator[Line]:
    """Every setting that the job wrote, in the order of its tables."""
    written = run.written
    for key in ("algorithm", "up", "down", "objective", "cost", "time", "start", "stop", "log", "tune", "workers"):
        if table := written.get(key):
            yield key, _table(table)
    if isinstance(seed := written.get("seed", 0), int):
        copied = f"; a copy of {run.attrs[COPY_OF]}, for nothing is drawn" if COPY_OF in run.attrs else ""
        yield "seed", f"{seed}{copied}"
    for place, part in json.loads(run.attrs.get("built", "{}")).items():
        yield "built", f"{place}: {_table(part)}"
    if run.attrs.get("overridden"):
        yield "--set", _table(json.loads(run.attrs["overridden"]))


def _table(table: Any) -> str:
    """A table in one line: its name first, then its other keys; tables within it in brackets."""
    if not isinstance(table, dict):
        return str(table)
    first = [key for key in ("name", "model") if isinstance(table.get(key), str)]
    rest = [f"{key} = {_value(value)}" for key, value in table.items() if key not in first]
    return ", ".join([*(table[key] for key in first), *rest])


def _value(value: Any) -> str:
    return f"({_table(value)})" if isinstance(value, dict) and list(value) != ["name"] else _table(value)


def _reached(run: Run, last: dict[str, Any]) -> Iterator[Line]:
    """The last row: the point, bits, cost, and coordinates sent."""
    point = ", ".join(f"{k} {last[k]:.10g}" for k in ("loss", "suboptimality", "grad_norm") if not math.isnan(last[k]))
    yield "reached", f"round {last['round']}: {point}"
    for way in ("up", "down"):
        wire, paper = bits_text(last[f"wire_bits_{way}"]), bits_text(last[f"paper_bits_{way}"])
        yield way, f"{wire} on the wire, {paper} by the paper's formula, cost {last[f'cost_{way}']:.6g}"
    messages, of = last["round"] * run.attrs["n_workers"], "round and worker"
    if "arrivals" in last:
        messages, of = last["arrivals"] + last.get("ignored", 0), "message that arrived"
    sent = last["elements_up"] / max(1, messages)
    yield "sent", f"{sent:.4g} coordinate{'' if sent == 1 else 's'} a {of}"


def _found(run: Run, last: dict[str, Any]) -> Iterator[Line]:
    """What the run evaluated and tuned, and the columns that its algorithm adds."""
    if "model_seconds" in last:
        fixed = f": computing and latency {last['model_fixed']:.4g} s" if "model_fixed" in last else ""
        bits = f", and {bits_text(last['model_bits'])} that were waited for" if last.get("model_bits") else ""
        on = f" on links of {links}" if (links := run.attrs.get("links")) else ""
        yield "model", f"{last['model_seconds']:.4g} s{on}{fixed}{bits}"
    if evaluated := run.evaluated:
        yield "evaluated", ", ".join(f"{k} = {v:.9g}" for k, v in evaluated.items())
    if run.tuned:
        yield "tuned", _tuned(run.tuned)
    further = set(last).difference(named("counter", "evaluation", *OF_CLOCK, "theory"))
    for name in sorted(n for n in further if not np.all(np.isnan(run.trace[n]))):
        after_rounds = run.trace[name][1:] if last["round"] else run.trace[name]  # row 0 comes before the first
        yield "column", f"{name} {last[name]:.6g} at the end, {np.nanmean(after_rounds):.6g} in the mean"


def _tuned(tuned: Mapping[str, Any]) -> str:
    """The value that [tune] found, by what, and what was tried."""
    note = caveat(tuned)
    several = isinstance(tuned["value"], Mapping)
    won = (in_words(tuned["value"]) if several else f"{tuned['parameter']} = {tuned['value']}") + f" ({note})" * bool(note)
    if "to" not in tuned:  # as earlier versions tuned
        return f"{won}, by {tuned['merit']}: {', '.join(f'{in_words(value)}: {merit:.4g}' for value, merit in tuned['tried'])}"
    return f"{won}, by {tuned['by']} to {tuned['to']}: {', '.join(_trials(tuned))}; seeds {', '.join(map(str, tuned['seeds']))}"


def _trials(tuned: Mapping[str, Any]) -> Iterator[str]:
    """What each value paid to the target, by how many trials where some missed it, or how near it came, and in which share of the
    run's length."""
    each = tuned.get("paid") or [[]] * len(tuned["tried"])  # earlier versions kept the medians alone
    for (value, merit), took, share, paid in zip(tuned["tried"], tuned["took"], tuned["share"], each, strict=True):
        missed = "diverged, or ended above its start" if math.isinf(merit) else f"not reached (nearest {merit:.3g})"
        if reached := [each for each in paid if each is not None]:
            ends = dict.fromkeys(amount(end, tuned["by"]) for end in (min(reached), max(reached)))
            which = "seeds" if len(paid) == len(tuned["seeds"]) else "trials"
            missed = f"reached by {len(reached)} of {len(paid)} {which}, in {' … '.join(ends)}"
        length = f" in 1/{round(1 / share)} of the run" if share < 1 else ""
        yield f"{in_words(value)}: {missed}{length}" if took is None else f"{in_words(value)}: {amount(took, tuned['by'])}"


def _made(run: Run) -> Iterator[Line]:
    a, seconds = run.attrs, {k: v[-1] for k, v in run.timing.items()}
    total = max(seconds.pop("seconds"), 1e-30)
    evaluate = seconds.pop("evaluate")
    parts = ", ".join(f"{k} {v:.3g} s ({v / total:.0%})" for k, v in seconds.items())
    yield "time", f"{total:.4g} s: {parts}; evaluation, off the clock, {evaluate:.3g} s"
    if wall := json.loads(a.get("wall", "{}")):
        yield "wall", f"{sum(wall.values()):.4g} s: " + ", ".join(f"{name} {took:.3g} s" for name, took in wall.items())
    library = a["mpi_library"] if a["mpi_library"] != "none" else "without MPI"
    yield "made by", f"{', '.join(f'{k} {v}' for k, v in json.loads(a['versions']).items())}; {library}"
    yield "on", f"{a['host']}" + (f", commit {a['commit']}" if a.get("commit") else "")
