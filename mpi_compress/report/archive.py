"""A figure as one file: its job, plugins and results in a zip, which is played again and compared."""

import hashlib
import json
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from mpi_compress.core.errors import UserError
from mpi_compress.core.plugins import sources
from mpi_compress.core.tables import markdown
from mpi_compress.job.loading import Job
from mpi_compress.results.files import result_file
from mpi_compress.results.reader import Run, read
from mpi_compress.results.tidy import BIT_FOR_BIT, difference

SUMS = "SHA256SUMS"


def archive(file: Path, job: Job, out: Path, target: Path) -> int:
    """Write a job's file, the modules of its plugins, its results, and README.md, to a zip; the number of results.

    Data are not packed: README.md names each set with its digest. UserError: a run has no result, or the zip cannot be written.
    """
    results = [result_file(job.name, spec.label, spec.run_id, out) for spec in job.runs]
    missing = [spec.label for spec, result in zip(job.runs, results, strict=True) if not result.exists()]
    if missing:
        raise UserError(f"archive: {len(missing)} of {len(results)} runs have no result, such as '{missing[0]}'; run the job first")
    runs = [read(result) for result in results]
    jobs = PurePosixPath("jobs", *PurePosixPath(job.name).parts)
    texts = {str(jobs) + ".toml": file.read_bytes()}
    for name in dict.fromkeys(name for spec in job.runs for name in spec.written.get("plugins", [])):
        texts |= {str(jobs.parent / place): source.read_bytes() for place, source in sources(name).items()}
    texts |= {f"results/{job.name}/{result.name}": result.read_bytes() for result in results}
    texts["README.md"] = readme(job, runs, f"{jobs}.toml").encode()
    sums = "".join(f"{hashlib.sha256(text).hexdigest()}  {name}\n" for name, text in texts.items())
    try:
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, text in {**texts, SUMS: sums.encode()}.items():
                packed.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)  # of no date: the same results, the same zip
    except OSError as error:
        raise UserError(f"-o {target}: cannot be written: {error.strerror}") from None
    return len(results)


def unpack(file: Path, folder: Path) -> Path:
    """Unpack a zip of `archive` into a new folder, its bytes compared with their checksums; the job's file.

    UserError: it is no such zip, it is damaged, or the folder has something else.
    """
    try:
        with zipfile.ZipFile(file) as packed:
            sums = [line.split("  ", 1) for line in packed.read(SUMS).decode().splitlines()]
            for wanted, name in sums:
                text, there = packed.read(name), folder.joinpath(*PurePosixPath(name).parts)
                if hashlib.sha256(text).hexdigest() != wanted:
                    raise UserError(f"{file}: {name} has another checksum than {SUMS} says: it is damaged")
                if not there.resolve().is_relative_to(folder.resolve()):
                    raise UserError(f"{file}: {name} would lie outside of {folder}")
                if there.exists() and there.read_bytes() != text:
                    raise UserError(f"{there}: is there already, with another content than in {file}; remove it first")
                there.parent.mkdir(parents=True, exist_ok=True)
                there.write_bytes(text)
    except UserError:
        raise
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise UserError(f"{file}: is no archive of `mpi-compress archive`: {error}") from None
    except OSError as error:
        raise UserError(f"{file}: cannot be unpacked into {folder}: {error.strerror}") from None
    return next(folder.joinpath(*PurePosixPath(name).parts) for _, name in sums if name.endswith(".toml"))


def compared(job: Job, archived: Path, played: Path) -> Iterator[tuple[bool, str]]:
    """For each run whether its result, played again, has the archived one's bits, and a line that says so or where they part."""
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
    sets = {f"{run.attrs['data']}, {run.attrs['n_samples']} rows, d = {run.attrs['dim']}" for run in runs}
    rows = [[run.label, run.status, str(run.rows), f"{run.trace['loss'][-1]:.10g}", str(run.attrs["run_id"])] for run in runs]
    table = markdown(["run", "status", "rows", "last loss", "run id"], rows)
    return f"""# {job.title}

    mpi-compress run THIS.zip             # unpack, play again, compare with results/, bit for bit
    mpi-compress plot {file}      # the figure, from results/, in the unpacked folder
    mpi-compress check {file}     # the claims, likewise

`run` imports the plugins of this archive, as any job does.

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
