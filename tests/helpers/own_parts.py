"""Modules that a test writes as users do, each of a name that no other one has."""

import itertools
import textwrap
from pathlib import Path

_NUMBER = itertools.count()
HEAD = """
from dataclasses import dataclass
import numpy as np
import mpi_compress as mc
"""


def module_in(folder: Path, source: str, head: str = HEAD) -> str:
    """Write a module, and return its name, as `plugins` has it."""
    name = f"own_{next(_NUMBER)}"
    (folder / f"{name}.py").write_text(head + textwrap.dedent(source))
    return name
