"""Runs that need not be executed: their results are there, of this job or of another one, as one file under both names; or they are
copies of the result of a run that differs in its seed alone, and has drawn no random number, or in [stop] alone, by nothing that it
reached."""

import glob
import json
import os
import shutil
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import h5py

from mpi_compress.algorithms import Algorithm
from mpi_compress.core import seals
from mpi_compress.core.errors import UserError
from mpi_compress.core.progress import print_line
from mpi_compress.engine.request import Request
from mpi_compress.job.runs import RunSpec, outdated
from mpi_compress.job.tables import Tables
from mpi_compress.preparing.problems import OF_OPTIMUM
from mpi_compress.results import checksums
from mpi_compress.results.columns import LEFT_OUT
from mpi_compress.results.files import checkpoint_of, part_of
from mpi_compress.results.locks import BeingWritten, lock, sync
from mpi_compress.results.reader import ANY_SEED, COPY_OF, LABEL, attributes, read_once
from mpi_compress.saving.checkpoint import Header, read_header, remove_checkpoint

ByRunId = Callable[[], Mapping[str, Sequence[Path]]]
COURSE = "course"  # the attribute of a result that it has in common with longer runs
_IN_COMMON = (COURSE, "stop"), (ANY_SEED, "seed")  # attributes of equal runs, and in what these differ


def done(specs: Sequence[RunSpec], files: Sequence[Path], request: Request) -> list[bool]:
    """Which runs have a result, their own or one that another job has of the same run, which is linked. At rank 0. A
    result of another exchange counts as none, since allgather has no messages down to count."""
    others, quiet = by_run_id(request.out), request.quiet or (request.shared and not request.details)
    return [not request.fresh and _is_done(file, spec, others, quiet) for file, spec in zip(files, specs, strict=True)]


def taken(spec: RunSpec, file: Path, beside: Sequence[Path], others: ByRunId) -> Path | None:
    """The result that a run takes which has none: one of these beside its own that `equal_run` finds, or that of the same run in
    another job."""
    if spec.tune is None and (equal := equal_run(spec, None, beside)):
        return equal
    same = [] if part_of(file).exists() or checkpoint_of(file).exists() else others().get(spec.run_id, [])
    return next((other for other in same if _is_whole(other, spec, "run_id", spec.run_id)), None)


def _is_done(file: Path, spec: RunSpec, others: ByRunId, quiet: bool) -> bool:
    if file.exists():
        if why := lacks(file, spec):
            if not quiet:
                print_line(f"{spec.label}: {file}: {why}; it is run again")
            return False
        with suppress(OSError):
            if not part_of(file).exists():  # else it begins again
                remove_checkpoint(checkpoint_of(file), unfinished=spec.checkpoint.keep)
        return True
    return is_taken(spec, file, None, taken(spec, file, siblings(file), others), quiet)


def siblings(file: Path) -> list[Path]:
    """The finished results beside a run's that have its label."""
    return sorted(file.parent.glob(f"{glob.escape(file.stem.rpartition('-')[0])}-{'?' * 12}.h5"))


def equal_run(spec: RunSpec, tuned: Tables | None, among: Sequence[Path]) -> Path | None:
    """The result of a run that differs in [stop] alone, by nothing that it reached, or in its seed alone, and has drawn no random
    number, if it can be read. `tuned` is what [tune] found."""
    attrs = {other: attributes(other) for other in among}
    for name, key in _IN_COMMON:
        having = sorted((other for other in among if name in attrs[other]), key=lambda other: COPY_OF in attrs[other])
        own = spec.id_of_all(key, tuned) if having else ""
        for other in having:
            if attrs[other][name] == own and _is_whole(other, spec, name, own) and (name == ANY_SEED or _ends_alike(spec, other)):
                return other
    return None


def _ends_alike(spec: RunSpec, other: Path) -> bool:
    """True if a run would end with the last row of a finished one of another [stop]: by then neither has reached anything that the
    other one's [stop] does not have."""
    with suppress(KeyError, TypeError, ValueError):
        run = read_once(other)
        now, then = spec.stop, spec.changed({"stop": run.written["stop"]}, "").stop
        reached = [target.row_of(run) for target in {*now.targets} ^ {*then.targets}]
        spent = [k for k in {now.rounds} ^ {then.rounds} if k is not None and k <= run.trace["round"][-1]]
        alike = isinstance(spec.algorithm, Algorithm) and (now.own, now.diverged) == (then.own, then.diverged)
        return alike and not spent and all(row is None for row in reached)
    return False


def shorter_run(spec: RunSpec, file: Path, course: str) -> Path | None:
    """The longest result from whose last round a run can go on: [stop] alone differs, and would not have ended it before."""
    headers = ((other, read_header(checkpoint_of(other))) for other in siblings(file) if other != file)
    found = [(header.k, other) for other, header in headers if header and _leads_to(spec, other, header, course)]
    return max(found)[1] if found else None


def _leads_to(spec: RunSpec, other: Path, header: Header, course: str) -> bool:
    """True if a run would have come by the kept state of another one."""
    if attributes(other).get(COURSE) != course or not serves(other, spec) or spec.stop.own:
        return False
    try:
        run = read_once(other)
        met = [(target.row_of(run), header.mark.rows if target in spec.stop.levels else run.rows) for target in spec.stop.targets]
    except UserError:
        return False
    return header.k <= (spec.stop.rounds or header.k) and all(row is None or row >= rows for row, rows in met)


def is_taken(spec: RunSpec, file: Path, tuned: Tables | None, other: Path | None, quiet: bool) -> bool:
    """True if a result, of the same run or of an equal one, is now this run's, too. At rank 0."""
    if other is None:
        return False
    run, how = read_once(other), f"{other} is the same run; its result is taken"
    attrs, overridden = run.attrs, json.dumps(spec.overridden) if spec.overridden else ""
    own = {LABEL: spec.label, "job": spec.toml(), "overridden": overridden}
    if attrs["run_id"] != spec.run_id:
        original, how = attrs.get(COPY_OF, ""), f"{other} had ended before ({run.ended_by}); its result is taken"
        if run.seed != spec.seed:
            original, how = original or attrs["run_id"], f"nothing is drawn, so it is a copy of {other}"
        copy_of = original if original != spec.run_id else ""  # else its own result was removed, and a copy of that stayed
        own |= {"run_id": spec.run_id, COPY_OF: copy_of, "tuned": json.dumps(tuned) if tuned else ""}
        own |= {name: spec.id_of_all(key, tuned) for name, key in _IN_COMMON if name in attrs}
    try:
        _copy(other, file, {name: value for name, value in own.items() if attrs.get(name, "") != value})
    except (OSError, BeingWritten):
        return False  # running it says what cannot be written, or waits
    if not quiet:
        print_line(f"{spec.label}{f', seed {spec.seed}' * ('seed' in spec.written)}: {how}")
    return True


def serves(file: Path, spec: RunSpec) -> bool:
    """True if a result is there, of the run's exchange, with the columns that its job asks for now."""
    return file.exists() and not lacks(file, spec)


def lacks(file: Path, spec: RunSpec) -> str:
    """What a result lacks of what its job asks for now, so that its run is run again; "" for nothing."""
    attrs = attributes(file)
    changed = outdated(spec, attrs)
    left_out = not spec.asked.isdisjoint(OF_OPTIMUM) and attrs.get("f_star_source") == LEFT_OUT
    other_ways = "until" in attrs or _exchange(attrs) not in ("", spec.workers.exchange)  # once a caller's function could end a run
    found = {f"exchange = {spec.workers.exchange!r}": other_ways, "x*": left_out, f"{', '.join(changed)} as it is now": changed}
    return next((f"the result lacks {what}" for what, is_lacking in found.items() if is_lacking), "")


def _is_whole(other: Path, spec: RunSpec, name: str, value: str) -> bool:
    """True if a result serves, can be read, and has this attribute; a line says why it cannot be read."""
    try:
        return serves(other, spec) and read_once(other).attrs.get(name) == value
    except UserError as error:
        print_line(f"{spec.label}: {error}; it is not taken")
        return False


def _exchange(attrs: Mapping[str, Any]) -> str:
    """How the messages of a result went; "" if it does not say."""
    with suppress(KeyError, TypeError, ValueError):
        return str(tomllib.loads(attrs["job"]).get("workers", {}).get("exchange", "p2p"))
    return ""


def by_run_id(out: Path) -> ByRunId:
    """All finished results below a folder, by the run id at the end of their names; looked for once, if they are asked for."""

    @cache
    def found() -> dict[str, list[Path]]:
        each: dict[str, list[Path]] = {}
        for file in sorted(out.rglob("*-*.h5")):
            each.setdefault(file.stem.rpartition("-")[2], []).append(file)
        return each

    return found


def _copy(other: Path, file: Path, changed: Mapping[str, str]) -> None:
    """Give a finished result a second name; or copy it with other attributes, "" being none, in place of what its run has begun.
    OSError: it cannot be written; BeingWritten: another process writes it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if not changed:
        with suppress(OSError):  # on file systems without hard links it is copied
            os.link(other, file)
            return
    part = part_of(file)
    locked = lock(part)
    try:
        shutil.copyfile(other, part)
        if changed:
            _change(part, changed)
        sync(part)
        os.replace(part, file)
        remove_checkpoint(checkpoint_of(file))
    finally:
        os.close(locked)


def _change(file: Path, changed: Mapping[str, str]) -> None:
    """Write other attributes, and their checksums where the file has any."""
    with h5py.File(file, "r+", locking=False) as h5:
        stored = json.loads(h5.attrs.get(checksums.ATTRIBUTE, "null"))
        own = {name: value for name, value in changed.items() if value}
        for name in changed:
            h5.attrs.pop(name, None)
        h5.attrs.update(own)
        if stored is None:
            return
        kept = {name: value for name, value in stored["attributes"].items() if name not in changed}
        stored["attributes"] = kept | checksums.of_each(own)
        h5.attrs[checksums.ATTRIBUTE] = json.dumps(stored)
    seals.seal(file)
