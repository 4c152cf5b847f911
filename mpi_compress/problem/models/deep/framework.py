"""JAX, imported when it is first used: on one thread, on the CPU unless $JAX_PLATFORMS names something else."""

import importlib
import os
import platform
import re
from functools import cache
from pathlib import Path
from typing import Any

from mpi_compress.core.errors import UserError

_FLAG = "--xla_cpu_multi_thread_eigen=false"
_EXTENSIONS = re.compile(r"avx\w*|fma|amx\w*|sse4_2|neon|asimd\w*|sve\w*")


class _Module:
    """A module of JAX that is imported when something of it is used."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        require()
        return getattr(importlib.import_module(self._name), attribute)


jax: Any = _Module("jax")
jnp: Any = _Module("jax.numpy")
lax: Any = _Module("jax.lax")


@cache
def require() -> None:
    """Import JAX and start it on one thread; UserError, which says how to get it, if it is not installed."""
    flags, platforms = os.environ.get("XLA_FLAGS", ""), os.environ.get("JAX_PLATFORMS", "cpu")
    wanted = {"XLA_FLAGS": f"{flags} {_FLAG}".strip(), "NPROC": "1", "JAX_PLATFORMS": platforms}  # NPROC: threads of XLA's pool
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        importlib.import_module("jax").devices()
    except ModuleNotFoundError:
        raise UserError("this model needs JAX, which is not installed: pip install 'mpi-compress[deep]'") from None
    except RuntimeError as error:
        raise UserError(f"JAX cannot start on {platforms}: {str(error).splitlines()[0]}") from None
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)


def provenance() -> dict[str, str]:
    """What decides a network's last bits: the framework with its version, the device, and the CPU's vector instructions."""
    device = jax.devices()[0]
    return {"framework": f"jax {jax.__version__}", "device": device.device_kind, "instruction_set": _instruction_set()}


@cache
def _instruction_set() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.machine()
    line = next((line for line in text.splitlines() if line.startswith(("flags", "Features"))), "")
    return " ".join([platform.machine(), *sorted({word for word in line.split() if _EXTENSIONS.fullmatch(word)})])
