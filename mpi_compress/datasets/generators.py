"""The contract of a data generator: a recipe whose parameters are keys of a job's [data] table."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from mpi_compress.compressed import Vector
from mpi_compress.registry import Registry


@dataclass(frozen=True)
class Generator(ABC):
    """A synthetic data set: its parameters, its seed among them, decide every number."""

    paper: ClassVar[str] = ""
    seed: int = 0

    @abstractmethod
    def make(self) -> tuple[Any, Vector]:
        """The samples, a SciPy CSR matrix or an array (N, d), and their labels (N,)."""


generators: Registry[Generator] = Registry("generator")
