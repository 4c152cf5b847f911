"""Communication-efficient distributed optimisation over MPI, with every bit really sent."""

import ast
import os
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")  # one thread a rank, set before NumPy is imported: more would change bits

_STUB = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
_MODULES = {
    name.asname: str(each.module) for each in _STUB if isinstance(each, ast.ImportFrom) for name in each.names if name.asname
} | {
    "algorithms": "mpi_compress.algorithms", "datasets": "mpi_compress.problem.datasets", "testing": "mpi_compress.guard.testing",
}  # fmt: skip
"""The module that a name stands for, or that defines it, by the stub of type checkers; imported when it is first used."""
__all__ = sorted({*_MODULES, "__version__"})


class _Problem(ModuleType):
    """The package of problems, which users call: `mc.problem(job)`."""

    def __call__(self, *arguments: Any, **settings: Any) -> Any:
        return import_module("mpi_compress.preparing.alone").problem(*arguments, **settings)


import_module("mpi_compress.problem").__class__ = _Problem


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        module = import_module(_MODULES[name])
        if not (module.__name__.endswith(f".{name}") or hasattr(module, name)):
            import_module(f"{module.__name__}.{name}")
        value: Any = module if module.__name__.endswith(f".{name}") else getattr(module, name)
    elif name == "__version__":
        from importlib.metadata import version

        value = version("mpi-compress")
    else:
        raise AttributeError(f"module 'mpi_compress' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
