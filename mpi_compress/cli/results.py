"""`mpi-compress results ls|rm|gc|mv`"""

import re
import sys
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Sequence

from mpi_compress.core.ending import EXIT_FAILED
from mpi_compress.core.errors import UserError
from mpi_compress.core.progress import bits_text, count_text, print_line
from mpi_compress.core.tables import plain, shown
from mpi_compress.core.terminal import room, say
from mpi_compress.results.catalogue import Entry, entries, move, remove, remove_empty_folders
from mpi_compress.results.files import TRIALS, job_name
from mpi_compress.results.settings import settings_of, varying


def act_ls(options: Namespace) -> int:
    found = entries(options.out, options.what)
    listed = [entry for entry in found if options.trials or not entry.is_trial] or found
    if listed:
        (heads, *rows), letters = _rows(listed, lambda entry: entry.job), room(sys.stdout)
        if letters is not None and max(map(len, plain(heads, rows))) > letters:  # then labels say the rest
            heads, *rows = _rows(listed, lambda entry: f"{entry.job} {entry.label}")
            heads.remove("differs in")
            rows = [[job, ", ".join(filter(None, (label, differs))), *others] for job, label, differs, *others in rows]
        say(*shown(sys.stdout, heads, rows, ("size", "age", "status", "job")))
    trials = [entry for entry in found if entry not in listed]
    hidden = f"; --trials lists {count_text(len(trials), 'trial')} of [tune], {_size(trials)}" * bool(trials)
    states = sum(entry.kept for entry in listed)
    kept = f", {bits_text(states, 'B', 3)} of it states from which runs go on (`results rm --states`)" if states else ""
    say(f"{count_text(len(listed), 'result')}, {_size(listed)}{kept}{hidden}")
    damage = [line for entry in found for line in entry.damage()] if options.check else []
    for line in damage:
        print_line(f"mpi-compress: {line}")
    return EXIT_FAILED if damage else 0


def _rows(found: Sequence[Entry], group: Callable[[Entry], str]) -> list[list[str]]:
    """Heads, and a row for each result, by job, label, --set and seed; settings are compared within a group, such as a job."""
    settings = {entry: settings_of(tables) if (tables := entry.tables) else {} for entry in found}
    groups = {entry: group(entry) for entry in found}
    keys = {name: varying([own for e, own in settings.items() if groups[e] == name and own]) for name in set(groups.values())}
    jobs, rows = list(dict.fromkeys(entry.job for entry in found)), []
    for entry, own in settings.items():
        changes = ", ".join(f"{key} = {value}" for key, value in entry.overridden.items())
        differs = ", ".join(f"{key} = {own[key]}" for key in keys[groups[entry]] if key in own and key not in entry.overridden)
        numbers = [str(entry.state), "–" if (loss := entry.loss) is None else f"{loss:.4g}", _size([entry]), _age(entry.written)]
        others = re.sub(r"seed = \d+", "", differs), str(own.get("seed"))
        order = jobs.index(entry.job), *map(_natural, (entry.label, changes, *others))
        rows.append((order, [entry.job, entry.label, differs, changes, *numbers]))
    table = [["job", "label", "differs in", "--set", "status", "loss", "size", "age"], *(row for _, row in sorted(rows))]
    return table if any(row[3] for row in table[1:]) else [[*row[:3], *row[4:]] for row in table]


def _natural(text: str) -> list[tuple[str, float]]:
    """Sorts a text by its numbers: "k = 9" before "k = 10"."""
    return [(words, float(number or 0)) for words, number in re.findall(r"(\D*)(\d*)", text)]


def act_rm(options: Namespace) -> int:
    if not options.states:
        if not options.what:
            raise UserError("results rm: name jobs or results; --states alone removes the last states of all complete runs")
        return _removed(entries(options.out, options.what), options)
    states = [state for entry in entries(options.out, options.what) if (state := entry.last_state)]
    size = bits_text(sum(state.stat().st_size for state in states), "B", 3)
    if states and _is_agreed(f"remove {count_text(len(states), 'last state')}, {size}?", options):
        for state in states:
            remove(state)
    say(f"removed {count_text(len(states), 'last state')}; the results stay")
    return 0


def act_gc(options: Namespace) -> int:
    from mpi_compress.evidence.outcomes import job_files, unnamed  # the other commands do not wait for what reads jobs

    found = unnamed(files := job_files(options.what), options.out)
    if not found:
        print("nothing to remove: the jobs name every result")
        return 0
    names = [name for file in files if (own := job_name(file)) for name in (own, f"{own}/{TRIALS}")]
    others = Counter(entry.job for entry in found if options.what and entry.job not in names)
    goes = f"removes what no named job has: {', '.join(f'{n} of {job}' for job, n in others.items())}"
    if others and options.yes and not options.all_others:
        raise UserError(f"{goes}; name these jobs too, or give --all-others; `results rm JOB` removes a job's own")
    if others:
        say(goes)
    return _removed(found, options)


def _removed(found: Sequence[Entry], options: Namespace) -> int:
    """Remove results once that is agreed to; those that are being written are left."""
    for entry in [entry for entry in found if entry.is_being_written]:
        print_line(f"mpi-compress: {entry.result}: is being written, and is left")
    found = [entry for entry in found if not entry.is_being_written]
    if not options.yes:
        listed = [entry for entry in found if not entry.is_trial] or found
        say(*(f"{entry.result}  {entry.label}, {_size([entry])}, {_age(entry.written)}" for entry in listed))
        trials = f", with {count_text(n, 'trial')} of [tune]" if (n := len(found) - len(listed)) else ""
        if not _is_agreed(f"remove {count_text(len(found), 'result')}{trials}, {_size(found)}?", options):
            return 0
    for entry in found:
        entry.remove()
    remove_empty_folders(options.out)
    say(f"removed {count_text(len(found), 'result')}")
    return 0


def _is_agreed(question: str, options: Namespace) -> bool:
    """True if --yes is given, or the user says so."""
    if options.yes:
        return True
    if not sys.stdin.isatty():
        raise UserError(f"{question} nobody can be asked here; --yes removes them")
    agreed = input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
    if not agreed:
        print("nothing is removed")
    return agreed


def act_mv(options: Namespace) -> int:
    n = move(options.job.rstrip("/"), options.to.rstrip("/"), options.out)
    say(f"moved {count_text(n, 'result')} to {options.out / options.to}")
    return 0


def _size(entries: Sequence[Entry]) -> str:
    return bits_text(sum(entry.size for entry in entries), "B", 3)


def _age(written: float) -> str:
    minutes = max(0.0, time.time() - written) / 60
    return f"{minutes / 1440:.0f} d" if minutes >= 1440 else f"{minutes / 60:.0f} h" if minutes >= 60 else f"{minutes:.0f} min"
