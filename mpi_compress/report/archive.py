"""A figure, or many, as one file: jobs, the modules of their plugins, and results in a zip."""

import json
import shlex
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from mpi_compress.core.errors import UserError, writing
from mpi_compress.core.plugins import sources
from mpi_compress.core.tables import in_markdown, markdown
from mpi_compress.core.terminal import printable
from mpi_compress.job.loading import Job
from mpi_compress.report.citation import About
from mpi_compress.results.files import result_file
from mpi_compress.results.reader import Run, read


def archive(jobs: Mapping[Path, Job], out: Path, target: Path, about: About | None = None) -> int:
    """Write the files of jobs, the modules of their plugins, their results, README.md and, with `about`, CITATION.cff to a zip; the
    number of results. Data are not packed: README.md names them. UserError: a run has no result, or the zip cannot be written."""
    members, pages, count = dict[str, bytes](), list[str](), 0
    for file, job in jobs.items():
        results = _results_of(job, out)
        place, count = PurePosixPath("jobs", *PurePosixPath(job.name).parts), count + len(results)
        members[f"{place}.toml"] = file.read_bytes()
        for name in dict.fromkeys(name for spec in job.runs for name in spec.written.get("plugins", [])):
            members |= {str(place.parent / path): source.read_bytes() for path, source in sources(name).items()}
        members |= {f"results/{job.name}/{result.name}": result.read_bytes() for result in results}
        pages.append(_readme(job, [read(result) for result in results], f"{place}.toml", target))
    members["README.md"] = "\n".join(pages).encode()
    if about is not None:
        members["CITATION.cff"] = about.cff.encode()
    part = target.with_name(f".{target.name}")  # which a kill leaves, and no half of an archive
    with writing(target):
        with zipfile.ZipFile(part, "w") as packed:
            for name, content in members.items():
                packed.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)  # of no date: the same results, the same zip
        part.replace(target)
    return count


def _results_of(job: Job, out: Path) -> list[Path]:
    results = {result_file(job.name, spec.label, spec.run_id, out): spec.label for spec in job.runs}
    if missing := [label for file, label in results.items() if not file.exists()]:
        raise UserError(f"{out}: {len(missing)} of {len(results)} runs have no result, such as '{missing[0]}'; `plan` lists all")
    return [*results]


def _readme(job: Job, runs: Sequence[Run], file: str, target: Path) -> str:
    """How a figure was made, and how it is made again, as Markdown."""
    versions = dict.fromkeys(f"{name} {version}" for run in runs for name, version in json.loads(run.attrs["versions"]).items())
    hours = sum(float(run.timing["seconds"][-1]) for run in runs) / 3600
    seeds = sorted({str(run.seed) for run in runs})
    sets = {f"{run.attrs['data']}, {run.attrs['n_samples']} samples, d = {run.attrs['dim']}" for run in runs}
    rows = [[run.label, run.status, str(run.rows), f"{run.trace['loss'][-1]:.10g}", str(run.attrs["run_id"])] for run in runs]
    table = markdown(["run", "status", "records", "last loss", "run id"], rows)
    first, text = runs[0].attrs, Path(__file__).with_name("archive.md").read_text(encoding="utf-8")
    words = {
        "title": job.title, "job": file, "versions": ", ".join(versions), "library": first["mpi_library"], "host": first["host"],
        "sets": "; ".join(sorted(sets)), "seeds": ", ".join(seeds),
    }  # fmt: skip
    escaped = {key: in_markdown(str(word)) for key, word in words.items()}
    in_shell = {"zip": printable(shlex.quote(target.name)), "file": printable(shlex.quote(file))}
    return text.format(table=table, runs=len(runs), hours=hours, **in_shell, **escaped)
