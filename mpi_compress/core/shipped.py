"""What comes with the package besides code: the papers' jobs, and the pages of docs/. A checkout has them beside the package."""

import os
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]
JOBS, TOML = "jobs", ".toml"


def shipped(folder: str) -> Path:
    """The folder of that name, "jobs" or "docs": in the package, or in the checkout."""
    inside = _PACKAGE / folder
    return inside if inside.is_dir() else _PACKAGE.parent / folder


def shipped_jobs() -> Mapping[str, Path]:
    """The package's job files by name, such as cat/fig1."""
    folder = shipped(JOBS)
    files = sorted(folder.rglob(f"*{TOML}"), key=lambda file: file.with_suffix("").parts)
    return {file.relative_to(folder).with_suffix("").as_posix(): file for file in files}


def named(name: str) -> str:
    """The file or folder that is meant by a name, which may lack .toml, and jobs/ in front. One in the current folder wins, then
    one in its folder `jobs`, then the package's; without any, it is the name itself."""
    path = Path(name)
    if path.is_absolute() or os.path.exists(path) or ".." in path.parts:
        return name
    bare = path.relative_to(JOBS) if path.parts[:1] == (JOBS,) else path
    for place in (path, JOBS / bare, shipped(JOBS) / bare):
        for file in (place.with_name(place.name + TOML) if place.name else place, place):
            if os.path.exists(file):  # False also where a name is too long
                return str(file)
    return name


def is_shipped(file: Path) -> bool:
    """True of a job file of the package, and of the folder of one."""
    return file.resolve().is_relative_to(shipped(JOBS).resolve())


def unshipped(file: str) -> str:
    """The name of a job file of the package, which `named` finds; of another one its path."""
    path, folder = Path(file), shipped(JOBS)
    return path.relative_to(folder).with_suffix("").as_posix() if path.is_relative_to(folder) else file


def like(name: str | Path) -> str:
    """The rest of a line about a job file that is not there: one of nearly that name, beside it or in the package."""
    path = Path(name)
    beside = [str(file) for file in path.parent.glob(f"*{TOML}")] if os.path.isdir(path.parent) else []
    close = get_close_matches(str(path), [*beside, *shipped_jobs()], n=1, cutoff=0.7)
    others = "`mpi-compress list jobs` names the package's, `mpi-compress new` writes one"
    return f"; did you mean {close[0]}?" if close else f"; {others}"
