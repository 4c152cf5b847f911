"""Runs that need not be executed: their results are there, of this job or of another one, as one file under both names; or a run
that differs in its seed alone has drawn no random number, and they are copies of its result."""

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
from mpi_compress.results.reader import ANY_SEED, COPY_OF, LABEL, attributes, read
from mpi_compress.saving.checkpoint import Header, read_header, remove_checkpoint

ByRunId = Callable[[], Mapping[str, Sequence[Path]]]
COURSE = "course"  # the attribute of a result that it has in common with longer runs


def done(specs: Sequence[RunSpec], files: Sequence[Path], request: Request) -> list[bool]:
    """Which runs have a result, their own or one that another job has of the same run, which is linked. At rank 0. A
    result of another exchange counts as none, since allgather has no messages down to count."""
    if request.fresh:
        return [False for _ in files]
    others = by_run_id(request.out)
    return [_is_done(file, spec, others, request.quiet) for file, spec in zip(files, specs, strict=True)]


def taken(spec: RunSpec, file: Path, beside: Sequence[Path], others: ByRunId) -> Path | None:
    """The result that a run takes which has none: one of these beside its own that differs in its seed alone, and has drawn no
    random number, or that of the same run in another job."""
    if spec.tune is None and (equal := equal_run(spec, None, beside)):
        return equal
    same = [] if part_of(file).exists() or checkpoint_of(file).exists() else others().get(spec.run_id, [])
    return next((other for other in same if serves(other, spec) and _is_whole(other, spec)), None)


def _is_done(file: Path, spec: RunSpec, others: ByRunId, quiet: bool) -> bool:
    if file.exists():
        if not serves(file, spec):
            if not quiet and (before := _exchange(attributes(file))) not in ("", spec.workers.exchange):
                print_line(f"{spec.label}: {file} is of exchange = {before!r}; it is run again by {spec.workers.exchange!r}")
            return False
        with suppress(OSError):
            if not part_of(file).exists():  # else it begins again
                remove_checkpoint(checkpoint_of(file), unfinished=spec.checkpoint.keep)
        return True
    other = taken(spec, file, siblings(file), others)
    if other is None or attributes(other)["run_id"] != spec.run_id:
        return other is not None and is_copied(spec, file, None, [other], quiet)
    try:
        _link(other, file, _of_job(spec))
    except OSError:
        return False  # running it says what cannot be written
    if not quiet:
        print_line(f"{spec.label}: {other} is the same run; its result is taken")
    return True


def _of_job(spec: RunSpec) -> dict[str, str]:
    """The attributes of a result that say what its job has written."""
    overridden = json.dumps(spec.overridden) if spec.overridden else ""
    return {LABEL: spec.label, "job": spec.toml(), "overridden": overridden}


def siblings(file: Path) -> list[Path]:
    """The finished results beside a run's that have its label."""
    name, _, _ = file.stem.rpartition("-")
    return sorted(file.parent.glob(f"{glob.escape(name)}-{'?' * 12}.h5"))


def equal_run(spec: RunSpec, tuned: Tables | None, among: Sequence[Path]) -> Path | None:
    """The result of a run that differs in its seed alone, and has drawn no random number, if it can be read. `tuned` is what [tune]
    found."""
    attrs = {other: attributes(other) for other in among}
    if equal := [other for other in among if ANY_SEED in attrs[other]]:
        own = spec.id_of_all("seed", tuned)
        equal = [other for other in equal if attrs[other][ANY_SEED] == own and serves(other, spec)]
    other = min(equal, key=lambda other: COPY_OF in attrs[other], default=None)
    return other if other and _is_whole(other, spec, ANY_SEED) else None


def shorter_run(spec: RunSpec, file: Path, course: str) -> Path | None:
    """The longest result from whose last round a run can go on: [stop] alone differs, and would not have ended it before."""
    headers = {other: read_header(checkpoint_of(other)) for other in siblings(file) if other != file}
    found = [(header.k, other) for other, header in headers.items() if header and _leads_to(spec, other, header, course)]
    return max(found)[1] if found else None


def _leads_to(spec: RunSpec, other: Path, header: Header, course: str) -> bool:
    """True if a run would have come by the kept state of another one."""
    if attributes(other).get(COURSE) != course or not serves(other, spec) or spec.stop.own:
        return False
    try:
        run = read(other)
        met = [(target.row_of(run), header.mark.rows if target in spec.stop.levels else run.rows) for target in spec.stop.targets]
    except UserError:
        return False
    return header.k <= (spec.stop.rounds or header.k) and all(row is None or row >= rows for row, rows in met)


def is_copied(spec: RunSpec, file: Path, tuned: Tables | None, among: Sequence[Path], quiet: bool) -> bool:
    """True if a run's result is now a copy of one with another seed, for neither draws. At rank 0."""
    if (other := equal_run(spec, tuned, among)) is None:
        return False
    original = str(attributes(other).get(COPY_OF) or attributes(other)["run_id"])
    copy_of = original if original != spec.run_id else ""  # else its own result was removed, and a copy of that stayed
    own = {"run_id": spec.run_id, COPY_OF: copy_of, "tuned": json.dumps(tuned) if tuned else "", COURSE: ""}
    try:
        _copy(other, file, _of_job(spec) | own)
    except (OSError, BeingWritten):
        return False  # running it says what cannot be written, or waits
    if not quiet:
        print_line(f"{spec.label}, seed {spec.seed}: nothing is drawn, so it is a copy of {other}")
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
    found = {"another exchange": other_ways, "x*": left_out, f"{', '.join(changed)} as it is now": changed}
    return next((f"the result lacks {what}" for what, is_lacking in found.items() if is_lacking), "")


def _is_whole(other: Path, spec: RunSpec, needs: str = "") -> bool:
    """True if a result can be read and is of this run, or `needs` an attribute; a line says why it cannot be read."""
    try:
        attrs = read(other).attrs
        return needs in attrs if needs else attrs.get("run_id") == spec.run_id
    except UserError as error:
        print_line(f"{spec.label}: {error}; it is not taken")
        return False


def _exchange(attrs: Mapping[str, Any]) -> str:
    """How the messages of a result went; "" if it does not say."""
    try:
        workers = tomllib.loads(attrs["job"]).get("workers", {})
    except (KeyError, TypeError, ValueError):
        return ""
    return str(workers.get("exchange", "p2p"))


def by_run_id(out: Path) -> ByRunId:
    """All finished results below a folder, by the run id at the end of their names; looked for once, if they are asked for."""

    @cache
    def found() -> dict[str, list[Path]]:
        each: dict[str, list[Path]] = {}
        for file in sorted(out.rglob("*-*.h5")) if out.is_dir() else ():
            each.setdefault(file.stem.rpartition("-")[2], []).append(file)
        return each

    return found


def _link(other: Path, file: Path, attrs: Mapping[str, str]) -> None:
    """Give a finished result a second name; where some of its attributes should differ, such as its label, a copy has them.
    OSError: it cannot be written."""
    own = attributes(other)
    if all(own.get(name, "") == value for name, value in attrs.items()):
        file.parent.mkdir(parents=True, exist_ok=True)
        with suppress(OSError):  # on file systems without hard links it is copied
            os.link(other, file)
            return
    _copy(other, file, attrs)


def _copy(other: Path, file: Path, attrs: Mapping[str, str]) -> None:
    """Copy a finished result, with other attributes; "": it should have none of that name. What its run has begun is replaced.
    OSError: it cannot be written; BeingWritten: another process writes it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part, own = part_of(file), attributes(other)
    locked = lock(part)
    try:
        shutil.copyfile(other, part)
        if changed := {name: value for name, value in attrs.items() if own.get(name, "") != value}:
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
        for name, value in changed.items():
            if value:
                h5.attrs[name] = value
            else:
                del h5.attrs[name]
        if stored is None:
            return
        kept = {name: value for name, value in stored["attributes"].items() if name not in changed}
        stored["attributes"] = kept | checksums.of_each({name: value for name, value in changed.items() if value})
        h5.attrs[checksums.ATTRIBUTE] = json.dumps(stored)
    seals.seal(file)
