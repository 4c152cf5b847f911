"""Numba kernels: plain functions on C-contiguous arrays, no objects, files or prints. Each has a NumPy twin in its test.

`kernel` compiles with the disk cache and without fast-math: the result is that of the loop as it is written, on any rank and any
processor. Sums that should use vector registers are written in lanes (`kernels.lanes`).
`inlined_kernel` is for a few lines that kernels share in their inner loops.

To import Numba takes longer than many commands take. It is imported when a kernel is first called, and within functions
alone.
"""

import gc
import hashlib
import io
import os
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial, update_wrapper
from pathlib import Path
from threading import RLock
from typing import Any

import platformdirs


class Deferred:
    """Stands for a function that Numba makes: a compiled kernel, or an instruction that kernels call. It is made when it is first
    called, or when a kernel that calls it is compiled, and takes this one's place in its module."""

    _object: Any = None

    def __init__(self, make: Callable[[], Any], function: Callable):
        self._make = make
        update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        return (self._object or self.made())(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.made(), name)

    def made(self) -> Any:
        with _making:
            if self._object is None:
                get_ready()
                while _known:
                    _known.pop()()
                self._object = self._make()
                beside = vars(sys.modules[self.__module__])
                if beside.get(self.__name__) is self:
                    beside[self.__name__] = self._object
        return self._object

    @property
    def _numba_type_(self) -> Any:
        """The type by which Numba knows what is called."""
        from numba.core.registry import cpu_target

        made = self.made()
        cpu_target.typing_context.refresh()
        return cpu_target.typing_context.resolve_value_type(made)


_making = RLock()
_known: list[Callable[[], Any]] = []  # each makes functions known to Numba that kernels call
_not_compiling: list[bool] = []
_listening: list[tuple[Callable[[str], None], Callable[[], None]]] = []


@cache
def get_ready() -> None:
    """Import Numba now, so that the first kernel needs not wait for it."""
    with lasting():
        from numba.core.registry import cpu_target

        cpu_target.target_context.refresh()
        _listen()


@contextmanager
def lasting() -> Iterator[None]:
    """What is imported within this block stays: Python does not search it for cycles meanwhile, which takes half of Numba's start,
    nor soon after."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.unfreeze()  # into the oldest generation
        if collects:
            gc.enable()


@cache
def _kept_in() -> str:
    """The folder of compiled kernels; "" if none can be written. A compiled kernel holds those that it calls, also those of other
    files: the folder's name is a hash of all of them."""
    sources = b"".join(file.read_bytes() for file in sorted(Path(__file__).parent.glob("*.py")))
    beside, of_user = str(Path(__file__).with_name("__pycache__")), platformdirs.user_cache_dir("mpi_compress")
    for place in filter(None, (os.environ.get("NUMBA_CACHE_DIR"), beside, os.environ.get("MPI_COMPRESS_CACHE"), of_user)):
        folder = Path(place, f"kernels-{hashlib.sha256(sources).hexdigest()[:16]}")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError:
            continue
        return str(folder)
    return ""


def _compiled(function: Callable, options: dict[str, Any]) -> Any:
    from numba import config, njit

    before, config.CACHE_DIR = config.CACHE_DIR, _kept_in()  # type: ignore[attr-defined]
    try:
        made: Any = njit(**{"cache": bool(_kept_in()), "nogil": True, "no_cfunc_wrapper": True, **options})(function)
    finally:
        config.CACHE_DIR = before  # type: ignore[attr-defined]
    if _kept_in():
        made._cache._cache_file.__class__ = _checked_files()
    return made


@cache
def _checked_files() -> type:
    """The class of a kernel's files: Numba's own with a CRC-32 at the end of each. A file that is not as it was written is removed;
    the kernel is compiled again, as it is where no file can be read or written."""
    from numba.core.caching import IndexDataCacheFile

    class CheckedFiles(IndexDataCacheFile):
        def load(self, key: Any) -> Any:
            found = None
            with suppress(OSError):
                found = super().load(key)
            if found is None and _not_compiling:
                raise NotCompiled
            return found

        def save(self, key: Any, data: Any) -> None:
            with suppress(OSError):
                super().save(key, data)

        def _load_index(self) -> Any:
            _remove_if_damaged(Path(self._index_path))
            return super()._load_index()

        def _load_data(self, name: str) -> Any:
            _remove_if_damaged(Path(self._data_path(name)))
            return super()._load_data(name)

        @contextmanager
        def _open_for_write(self, filepath: str) -> Iterator[io.BytesIO]:
            content = io.BytesIO()
            yield content
            with super()._open_for_write(filepath) as file:
                file.write(content.getvalue() + _crc(content.getvalue()))

    return CheckedFiles


def _crc(content: bytes) -> bytes:
    return zlib.crc32(content).to_bytes(4)


def _remove_if_damaged(file: Path) -> None:
    if file.exists() and _crc((content := file.read_bytes())[:-4]) != content[-4:]:
        _say_once(f"{file.parent}: a compiled kernel in it is damaged, and is compiled again")
        file.unlink(missing_ok=True)


@cache
def _say_once(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _decorator(**options: Any) -> Callable:
    return lambda function: Deferred(partial(_compiled, function, options), function)


kernel = _decorator(error_model="numpy", fastmath=False)
inlined_kernel = _decorator(error_model="numpy", inline="always")


def intrinsic(function: Callable) -> Any:
    """`numba.extending.intrinsic`: the decorated function returns an instruction's types and what writes it."""

    def make() -> Any:
        from numba.extending import intrinsic

        return intrinsic(function)

    return Deferred(make, function)


def by_types(**options: Any) -> Callable:
    """Decorates a function that only kernels call: for the types of its arguments it returns the function that is compiled."""

    def put(choose: Callable) -> Callable:
        def register() -> None:
            from numba.extending import overload

            overload(choose, jit_options=options)(choose)  # type: ignore[arg-type]

        _known.append(register)
        return choose

    return put


class NotCompiled(Exception):
    """Numba's cache lacks a kernel."""


@contextmanager
def without_compiling() -> Iterator[None]:
    """Raise NotCompiled before a kernel is compiled. Where there is no cache at all, it is compiled."""
    _not_compiling.append(True)
    try:
        yield
    finally:
        _not_compiling.pop()


@contextmanager
def compilations(begun: Callable[[str], None], ended: Callable[[], None]) -> Iterator[None]:
    """Call these before, with its name, and after each kernel that is compiled, for Numba's cache lacks it. Those that it calls are
    within it."""
    _listening.append((begun, ended))
    try:
        yield
    finally:
        _listening.remove((begun, ended))


def _listen() -> None:
    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            function = event.data["dispatcher"].py_func
            for begun, _ in _listening:
                begun(f"{function.__module__.rpartition('.')[2]}.{function.__name__}")

        def on_end(self, event: Any) -> None:
            for _, ended in _listening:
                ended()

    event.register("numba:compile", Listener())
