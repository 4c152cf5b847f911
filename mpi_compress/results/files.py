"""Where results lie: `<out>/<job>/<label>-<run id>.h5`, <job> the job's name, which may be several folders."""

import os
import re
from collections.abc import Sequence
from pathlib import Path, PurePath

from mpi_compress.core.errors import UserError

JOBS = "jobs"
ASIDE = ".old"  # of a result whose run is rerun
LETTERS = 60  # of a text in a file's name
TRIALS = "tuning"  # the folder of trials, in that of their job


def job_name(file: str | Path) -> str:
    """A job file's path below the innermost folder called `jobs`, without .toml; its stem where it lies below none."""
    path = Path(os.path.abspath(file)).with_suffix("")
    return "/".join([*below(path, JOBS), path.name])


def names_folder(name: str) -> bool:
    """True if a name is that of a folder below another, such as "sweep" or "sweep/steps"."""
    path = PurePath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts


def below(file: Path, name: str) -> Sequence[str]:
    """The folders of a file below the innermost one of this name; none where there is no such folder."""
    folders = file.parent.parts
    return folders[len(folders) - folders[::-1].index(name) :] if name in folders else ()


def folders_of(job: str, out: Path) -> list[Path]:
    """The folder of a job's results, then those of earlier versions, whose jobs were named by the end of their path alone."""
    parts = PurePath(job).parts
    return [out.joinpath(*parts[i:]) for i in range(len(parts))]


def new_file(job: str, label: str, run_id: str, out: Path) -> Path:
    """The file for the result of a run that begins again."""
    return _files(job, label, run_id, out)[0]


def result_file(job: str, label: str, run_id: str, out: Path) -> Path:
    """The file of a run's result: the one that exists or is begun, also where an earlier version put it; else `new_file`."""
    files = _files(job, label, run_id, out)
    whole = (file for file in files if file.exists())
    begun = (file for file in files if part_of(file).exists() or checkpoint_of(file).exists())
    return next(whole, None) or next(begun, files[0])


def part_of(result: Path) -> Path:
    """What a result is called while it is written."""
    return result.with_name(result.name + ".part")


def checkpoint_of(result: Path) -> Path:
    """The checkpoint that goes with a result."""
    return result.with_name(result.name + ".ckpt")


def refuse_archive(path: Path) -> None:
    """UserError for a zip, or a path that leads into one."""
    if found := next((place for place in (path, *path.parents) if place.suffix == ".zip" and place.is_file()), None):
        raise UserError(f"{found}: is an archive; `unzip {found}`, and take the jobs and results that are in it")


def refuse_no_file(path: Path) -> None:
    """UserError for a folder, or what is no plain file: to open a pipe may take for ever."""
    if path.exists() and not path.is_file():
        raise UserError(f"{path}: is {'a folder' if path.is_dir() else 'no plain file'}, in the place of a result's file")


def set_aside(result: Path) -> Path:
    """Rename a result to `.h5.old`, so that its run is not done, nor goes on; OSError if that is not possible."""
    checkpoint_of(result).unlink(missing_ok=True)
    return result.replace(result.with_name(f"{result.name}{ASIDE}"))


def result_of(file: Path) -> Path | None:
    """The name of the result that a file goes with: itself, set aside or not, its `.part` or its checkpoint; else None."""
    result = file.with_suffix("") if file.suffix in (".part", ".ckpt") else file
    return result if result.name.removesuffix(ASIDE).endswith(".h5") else None


def results_below(folder: Path) -> list[Path]:
    """The names of the results that files below a folder go with, those set aside too, in the order of their paths."""
    files = sorted(file for file in folder.rglob("*.h5*") if file.is_file()) if folder.is_dir() else []
    return list(dict.fromkeys(result for file in files if (result := result_of(file)) is not None))


def files_in(name: str | Path) -> list[str | Path]:
    """The results in a folder, without trials, or the file of that name; UserError for a folder without any."""
    if not os.path.isdir(name):
        return [name]
    found = [file for file in results_below(Path(name)) if file.suffix == ".h5" and file.exists() and file.parent.name != TRIALS]
    if not found and Path(name).suffix != ".h5":
        raise UserError(f"no results of runs in {name} yet; `mpi-compress run JOB` makes them")
    return [*found] or [name]


def in_file_name(text: str) -> str:
    """A text such as a label with what file names have alone: "top-k, k = 3" is "top-k-k=3"."""
    return re.sub(r"[^\w.+=-]+", "-", re.sub(r"\s*=\s*", "=", text)).strip("-.")


def _files(job: str, label: str, run_id: str, out: Path) -> list[Path]:
    plain = in_file_name(label)[:LETTERS] or "run"
    names = [plain, re.sub("[^ -~]+", "-", plain).strip("-.") or "run"]
    try:
        os.fsencode(names[0])
    except UnicodeEncodeError:  # the system's encoding lacks a letter
        names = [names[1], os.fsdecode(names[0].encode())]
    return [folder / f"{name}-{run_id}.h5" for name in dict.fromkeys(names) for folder in folders_of(job, out)]
