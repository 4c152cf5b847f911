"""Modules that a test writes as users do, each of a name that no other one has."""

import itertools
import textwrap
from pathlib import Path

from mpi_compress.core.registry import registries

_NUMBER = itertools.count()
HEAD = """
from dataclasses import dataclass
import numpy as np
import mpi_compress as mc
"""


def module_in(folder: Path, source: str, head: str = HEAD) -> str:
    """Write a module, and return its name, as `plugins` has it. The parts of those before are forgotten, as in a new session."""
    number = next(_NUMBER)
    for registry in registries:
        for earlier in range(number):
            registry.forget(f"own_{earlier}")
    name = f"own_{number}"
    (folder / f"{name}.py").write_text(head + textwrap.dedent(source))
    return name
