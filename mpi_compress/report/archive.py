"""A figure, or many, as one file: jobs, plugins and results in a zip, which is rerun and compared."""

import hashlib
import json
import re
import shutil
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from mpi_compress.core.errors import UserError, nearest, system_text
from mpi_compress.core.plugins import sources
from mpi_compress.core.progress import count_text
from mpi_compress.core.tables import markdown
from mpi_compress.job.loading import Job
from mpi_compress.problem.datasets.cache import hash_of
from mpi_compress.report.citation import About
from mpi_compress.results.files import result_file
from mpi_compress.results.reader import Run, read
from mpi_compress.results.tidy import BIT_FOR_BIT, difference
from mpi_compress.results.zipped import LARGEST, NO_ZIP, SUMS

_MEMBER = re.compile(r"README\.md|CITATION\.cff|datacite\.json|(?!.*\.\./)(jobs/.+\.(toml|py)|results/.+\.h5)")
_MOST, _LARGEST_TEXT = 10_000, 2**24  # files; bytes of one that is no result


def archive(jobs: Mapping[Path, Job], out: Path, target: Path, about: About | None = None) -> int:
    """Write the files of jobs, the modules of their plugins, their results, README.md, and what a citation needs, to a zip; the
    number of results. Data are not packed: README.md names each set with its digest. UserError: a run has no result, or the zip
    cannot be written."""
    texts, pages, count = dict[str, bytes](), list[str](), 0
    for file, job in jobs.items():
        results = results_of(job, out)
        place, count = PurePosixPath("jobs", *PurePosixPath(job.name).parts), count + len(results)
        texts[f"{place}.toml"] = file.read_bytes()
        for name in dict.fromkeys(name for spec in job.runs for name in spec.written.get("plugins", [])):
            texts |= {str(place.parent / path): source.read_bytes() for path, source in sources(name).items()}
        texts |= {f"results/{job.name}/{result.name}": result.read_bytes() for result in results}
        pages.append(readme(job, [read(result) for result in results], f"{place}.toml"))
    texts["README.md"] = "\n".join(pages).encode()
    texts |= {name: text.encode() for name, text in (about.files if about else {}).items()}
    _write(texts, target)
    return count


def _write(texts: Mapping[str, bytes], target: Path) -> None:
    """Write a zip of these members, and their checksums."""
    _refuse_large(target, {name: len(text) for name, text in texts.items()})
    sums = "".join(f"{hashlib.sha256(text).hexdigest()}  {name}\n" for name, text in texts.items())
    try:
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, text in {**texts, SUMS: sums.encode()}.items():
                packed.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)  # of no date: the same results, the same zip
    except OSError as error:
        raise UserError(f"-o {target}: cannot be written: {error.strerror}") from None


def unpack(file: Path, folder: Path, job: str = "") -> Path:
    """Unpack a zip of `archive` into a new folder, once all its bytes have been compared with their checksums; the job's file, of
    several jobs that of this name. UserError: it is no such zip, it is damaged, or larger than an archive is, it lacks a job or
    results, one of which cannot be read, or the folder has something else."""
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
    except NO_ZIP as error:
        raise UserError(f"{file}: is no archive of `mpi-compress archive`: {system_text(error)}") from None
    for result in (place for place in places.values() if place.suffix == ".h5"):
        read(result)
    jobs = {name.removeprefix("jobs/").removesuffix(".toml"): place for name, place in places.items() if name.endswith(".toml")}
    if not job and len(jobs) > 1:
        raise UserError(f"{file}: has {len(jobs)} jobs; name one, such as {file}/{min(jobs)}")
    if job and job not in jobs:
        raise UserError(f"{file}: {nearest(job, jobs, 'job')}")
    return jobs[job or min(jobs)]


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
    if not jobs or not results:
        raise UserError(f"{file}: has {count_text(jobs, 'job')} and {count_text(results, 'result')}, not jobs and their results")
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
    if len(sizes) > _MOST or sum(sizes.values()) > LARGEST:
        raise UserError(f"{file}: {len(sizes)} files of {sum(sizes.values()):,} bytes; {_MOST:,} of {LARGEST:,} are the most")
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
    used = {item: "" for run in runs for item in json.loads(run.attrs["versions"]).items()}
    versions = ", ".join(f"{name} {version}" for name, version in used)
    hours = sum(float(run.timing["seconds"][-1]) for run in runs) / 3600
    seeds = sorted({str(run.written.get("seed", 0)) for run in runs})
    sets = {f"{run.attrs['data']}, {run.attrs['n_samples']} samples, d = {run.attrs['dim']}" for run in runs}
    rows = [[run.label, run.status, str(run.rows), f"{run.trace['loss'][-1]:.10g}", str(run.attrs["run_id"])] for run in runs]
    table = markdown(["run", "status", "records", "last loss", "run id"], rows)
    first, text = runs[0].attrs, Path(__file__).with_name("archive.md").read_text(encoding="utf-8")
    return text.format(
        title=job.title, name=job.name, file=file, table=table, versions=versions, library=first["mpi_library"], host=first["host"],
        sets="; ".join(sorted(sets)), seeds=", ".join(seeds), runs=len(runs), hours=hours,
    )
