"""Installed packages with parts: those that declare the entry-point group `mpi_compress.plugins`.

An entry point names a module. One that has the name of a part is imported for this part; one of another name, for any part that
no other package has. None is looked for before a job names a part that is not known, or `list` is asked.
"""

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from mpi_compress.core.errors import UserError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

broken: "dict[EntryPoint, str]" = {}  # why what was asked for could not be imported, or is refused


@cache
def declared() -> "list[EntryPoint]":
    """What the installed packages declare, in the order of their names."""
    from importlib import metadata  # which takes a while, and most commands need none of it

    found = metadata.entry_points(group="mpi_compress.plugins")
    return sorted((e for e in found if e.dist is not None), key=lambda e: (package(e), e.name, e.module))


def package(entry: "EntryPoint") -> str:
    """The name and version of the package that declares it."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else ""


def package_of(module: str) -> str:
    """The installed package that declares a module, or one beside it in the same package of Python, and its version; "" if none."""
    return next((package(e) for e in declared() if e.module.partition(".")[0] == module.partition(".")[0]), "")


def imports(entry: "EntryPoint") -> bool:
    """Import its module; False if that is not possible, which `broken` says. UserError if a part in it has the name of another."""
    try:
        import_module(entry.module)
    except UserError as error:
        broken[entry] = f"package {package(entry)}: {error}"
        raise UserError(broken[entry]) from None
    except (Exception, SystemExit) as error:
        why = f"{type(error).__name__}: {' '.join(str(error).split())}"
        broken[entry] = f"package {package(entry)}: its plugin '{entry.module}' cannot be imported: {why}"
    return entry not in broken
