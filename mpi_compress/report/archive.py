"""A figure as one file: its job, plugins and results in a zip, which is rerun and compared."""

import hashlib
import json
import re
import shutil
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from mpi_compress.core.errors import UserError, system_text
from mpi_compress.core.plugins import sources
from mpi_compress.core.progress import count_text
from mpi_compress.core.tables import markdown
from mpi_compress.job.loading import Job
from mpi_compress.problem.datasets.cache import hash_of
from mpi_compress.results.files import result_file
from mpi_compress.results.reader import Run, read
from mpi_compress.results.tidy import BIT_FOR_BIT, difference

SUMS = "SHA256SUMS"
_MEMBER = re.compile(r"README\.md|(?!.*\.\./)(jobs/.+\.(toml|py)|results/.+\.h5)")
_MOST, _LARGEST, _LARGEST_TEXT = 10_000, 2**32, 2**24  # files; bytes of all together, and of one that is no result
_NO_ZIP = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, KeyError, ValueError, RuntimeError)


def archive(file: Path, job: Job, out: Path, target: Path) -> int:
    """Write a job's file, the modules of its plugins, its results, and README.md, to a zip; the number of results.

    Data are not packed: README.md names each set with its digest. UserError: a run has no result, or the zip cannot be written.
    """
    results = results_of(job, out)
    runs = [read(result) for result in results]
    jobs = PurePosixPath("jobs", *PurePosixPath(job.name).parts)
    texts = {str(jobs) + ".toml": file.read_bytes()}
    for name in dict.fromkeys(name for spec in job.runs for name in spec.written.get("plugins", [])):
        texts |= {str(jobs.parent / place): source.read_bytes() for place, source in sources(name).items()}
    texts |= {f"results/{job.name}/{result.name}": result.read_bytes() for result in results}
    texts["README.md"] = readme(job, runs, f"{jobs}.toml").encode()
    _refuse_large(target, {name: len(text) for name, text in texts.items()})
    sums = "".join(f"{hashlib.sha256(text).hexdigest()}  {name}\n" for name, text in texts.items())
    try:
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, text in {**texts, SUMS: sums.encode()}.items():
                packed.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)  # of no date: the same results, the same zip
    except OSError as error:
        raise UserError(f"-o {target}: cannot be written: {error.strerror}") from None
    return len(results)


def unpack(file: Path, folder: Path) -> Path:
    """Unpack a zip of `archive` into a new folder, once all its bytes have been compared with their checksums; the job's file.

    UserError: it is no such zip, it is damaged, or larger than an archive is, it lacks a job or results, one of which cannot be
    read, or the folder has something else.
    """
    try:
        with zipfile.ZipFile(file) as packed:
            places = _looked_at(file, packed, folder)
            for name, place in places.items():
                place.parent.mkdir(parents=True, exist_ok=True)
                with packed.open(name) as source, place.open("wb") as copy:
                    shutil.copyfileobj(source, copy, 2**20)
    except UserError:
        raise
    except OSError as error:
        raise UserError(f"{file}: cannot be unpacked into {folder}: {system_text(error)}") from None
    except _NO_ZIP as error:
        raise UserError(f"{file}: is no archive of `mpi-compress archive`: {system_text(error)}") from None
    for result in (place for place in places.values() if place.suffix == ".h5"):
        read(result)
    return next(place for place in places.values() if place.suffix == ".toml")


def _looked_at(file: Path, packed: zipfile.ZipFile, folder: Path) -> dict[str, Path]:
    """Where the members of a zip come to lie below a folder; UserError if one of them is not as `archive` writes it."""
    _refuse_large(file, {info.filename: info.file_size for info in packed.infolist()})
    for info in packed.infolist():
        if info.flag_bits & 1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise UserError(f"{file}: {info.filename!r:.99} is encrypted, or compressed by another method than deflate")
    sums = {name: digest for digest, name in re.findall(r"^([0-9a-f]{64})  (.+)$", packed.read(SUMS).decode(), re.M)}
    named, there = Counter([*sums, SUMS]), Counter(packed.namelist())
    if odd := [*(there - named), *(named - there)]:
        raise UserError(f"{file}: its files are not those that {SUMS} names, each once: {odd[0]!r:.99}")
    for name in sums:
        if not (_MEMBER.fullmatch(name) and name.isprintable() and str(PurePosixPath(name)) == name):
            raise UserError(f"{file}: {name!r:.99} is no file of an archive, such as jobs/NAME.toml or results/NAME/LABEL-ID.h5")
    jobs, results = (sum(name.endswith(ending) for name in sums) for ending in (".toml", ".h5"))
    if jobs != 1 or not results:
        raise UserError(f"{file}: has {count_text(jobs, 'job')} and {count_text(results, 'result')}, not one job and its results")
    places = {name: folder.joinpath(*PurePosixPath(name).parts) for name in sums}
    for name, place in places.items():
        with packed.open(name) as source:
            if hashlib.file_digest(source, "sha256").hexdigest() != sums[name]:  # type: ignore[arg-type]
                raise UserError(f"{file}: {name} has another checksum than {SUMS} says: it is damaged")
        if not place.resolve().is_relative_to(folder.resolve()):
            raise UserError(f"{file}: {name} would lie outside of {folder}")
        if place.exists() and hash_of(place) != sums[name]:
            raise UserError(f"{place}: is there already, with another content than in {file}; remove it first")
    return places


def _refuse_large(file: Path, sizes: Mapping[str, int]) -> None:
    """UserError for an archive of more, or larger, files than any figure has; nothing of it has been read yet."""
    if len(sizes) > _MOST or sum(sizes.values()) > _LARGEST:
        raise UserError(f"{file}: {len(sizes)} files of {sum(sizes.values()):,} bytes; {_MOST:,} of {_LARGEST:,} are the most")
    for name, size in sizes.items():
        if not name.endswith(".h5") and size > _LARGEST_TEXT:
            raise UserError(f"{file}: {name!r:.99} has {size:,} bytes; {_LARGEST_TEXT:,} are the most but for results")


def results_of(job: Job, out: Path) -> list[Path]:
    """The results of a job, which is packed or run again; UserError if one of them is not there."""
    results = [result_file(job.name, spec.label, spec.run_id, out) for spec in job.runs]
    if missing := [spec.label for spec, result in zip(job.runs, results, strict=True) if not result.exists()]:
        raise UserError(f"{out}: {len(missing)} of {len(results)} runs have no result, such as '{missing[0]}'; `plan` lists all")
    return results


def compared(job: Job, archived: Path, played: Path) -> Iterator[tuple[bool, str]]:
    """For each run whether its result, rerun, has the archived one's bits, and a line that says so or where they part."""
    for spec in job.runs:
        pair = [read(result_file(job.name, spec.label, spec.run_id, out)) for out in (archived, played)]
        lines = [*difference(*pair)]
        yield lines[0].startswith(BIT_FOR_BIT), f"{spec.label}: {' '.join(line.strip() for line in lines)}"


def readme(job: Job, runs: Sequence[Run], file: str) -> str:
    """How a figure was made, and a checklist of reproducibility, as Markdown."""
    first = runs[0].attrs
    versions = ", ".join(f"{name} {version}" for name, version in json.loads(first["versions"]).items())
    hours = sum(float(run.timing["seconds"][-1]) for run in runs) / 3600
    seeds = sorted({str(run.written.get("seed", 0)) for run in runs})
    sets = {f"{run.attrs['data']}, {run.attrs['n_samples']} samples, d = {run.attrs['dim']}" for run in runs}
    rows = [[run.label, run.status, str(run.rows), f"{run.trace['loss'][-1]:.10g}", str(run.attrs["run_id"])] for run in runs]
    table = markdown(["run", "status", "records", "last loss", "run id"], rows)
    return f"""# {job.title}

    mpi-compress run THIS.zip             # unpack, rerun, compare with results/, bit for bit
    mpi-compress plot {file}      # the figure, from results/, in the unpacked folder
    mpi-compress check {file}     # the claims, likewise

`run` imports the plugins of this archive, as any job does; it has looked at every file and checksum before.

{table}

| asked | answer |
| --- | --- |
| code | the job {file}; its plugins lie beside it |
| versions | {versions}; {first["mpi_library"]} |
| data | {"; ".join(sorted(sets))}; their content is part of the run ids |
| hyperparameters | every setting is in the job; what was tuned, over which values, is in each result: `mpi-compress show` |
| seeds | {", ".join(seeds)} |
| number of runs | {len(runs)}, all of the job's; those that diverged are among them |
| machine | {first["host"]} |
| computing time | {hours:.3g} hours in algorithms, without trials |
| measure of communication | bits of encoded messages that were sent; `paper_bits` follow the papers' formulas |
"""
