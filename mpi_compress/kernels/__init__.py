"""Numba kernels: plain functions on C-contiguous arrays, no objects, files or prints. Each has a NumPy twin in its test.

`kernel` compiles with the disk cache and without fast-math, also where its caller has it: the result is that of the loop as
it is written, on any rank.
`reassociating_kernel` lets sums be reordered so that they use vector registers; it is for values that one node computes and no
other recomputes. NaN and infinity still propagate. It is always inlined: otherwise several copies of it, each optimised by itself,
would exist, and which one runs would depend on what was compiled in this process and what was cached.
`inlined_kernel` is for a few lines that kernels share in their inner loops.

A compiled kernel holds those that it calls, also those of other files. Numba's cache looks only at the kernel's own file; here a
kernel is compiled again when any file of this folder has changed.

To import Numba takes longer than many commands take. It is imported when a kernel is first called. Until then a `Deferred` stands
for each kernel, and for what their files use of Numba; they import it from here: `types`, `cgutils`, `ir`, `intrinsic`, `overload`.
"""

import gc
import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial, update_wrapper
from importlib import import_module
from pathlib import Path
from threading import RLock
from typing import Any


class Deferred:
    """Stands for an object of Numba's, such as a compiled kernel, until it is first called, and is made.

    The object then takes its place in its own file, and in the file that calls it: later calls take no detour. If a kernel has to
    be compiled, all of them are made, and take their places in all files of this folder: the compiler looks at what a file calls.

    Args:
        make: makes the object.
        function: what it is made of, if it is a function.
    """

    _object: Any = None

    def __init__(self, make: Callable[[], Any], function: Callable | None = None):
        self._make, self._file = make, getattr(function, "__globals__", {})
        if function is not None:
            update_wrapper(self, function)
        _waiting.append(self)

    def __call__(self, *arguments: Any) -> Any:
        made, caller = self._made(), sys._getframe(1).f_globals
        if caller.get(self.__name__) is self:
            caller[self.__name__] = made
        return made(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made(), name)

    def _made(self) -> Any:
        if self._object is None:
            with _making, _fewer_searches():
                self._object = self._make()
                if self._file.get(self.__name__) is self:
                    self._file[self.__name__] = self._object
        return self._object


_waiting: list[Deferred] = []
_registrations: list[Callable[[], Any]] = []  # which make code known to Numba that kernels call
_making = RLock()
_to_wait: list[Callable[[], None]] = []  # calls that wait until another process has compiled what this one would compile


def get_ready() -> None:
    """Import Numba now, so that the first kernel needs not wait for it."""
    with _making, _fewer_searches():
        import_module("numba.core.runtime").rtsys.initialize(import_module("numba.core.registry").cpu_target.target_context)


def _make_all() -> None:
    """Make everything ready that compiling needs: Numba's functions, all that waits for it, and what kernels call."""
    with _making, _fewer_searches():
        _import_arraymath()
        for file in {id(deferred._file): deferred._file for deferred in _waiting}.values():
            file.update({name: value._made() for name, value in file.items() if type(value) is Deferred})
        while _registrations:
            _registrations.pop()()
        _waiting.clear()


@contextmanager
def _fewer_searches() -> Iterator[None]:
    """Leave out what takes a quarter of Numba's start: the search for cycles among its objects, which stay, and coverage's import.
    Numba reports to coverage what it compiles, where that measures."""
    collects, unused = gc.isenabled(), "coverage" not in sys.modules
    gc.disable()
    if unused:
        sys.modules["coverage"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        if unused:
            del sys.modules["coverage"]
        if collects:
            gc.enable()


def _import_arraymath() -> None:
    """Import Numba's functions on arrays without scipy.linalg. They import it only to see whether it is there, which it is, and
    that takes as long as half of Numba. Code that calls BLAS imports it when it is compiled."""
    linalg: Any = import_module("numba.np.linalg")
    check, linalg.ensure_blas = linalg.ensure_blas, lambda: None
    try:
        import_module("numba.np.arraymath")
    finally:
        linalg.ensure_blas = check


def _later(make: Callable[[], Any], function: Callable | None = None) -> Any:
    return make() if "numba" in sys.modules and not _waiting else Deferred(make, function)


@cache
def _sources() -> bytes:
    """A hash of the files of this folder."""
    return hashlib.sha256(b"".join(file.read_bytes() for file in sorted(Path(__file__).parent.glob("*.py")))).digest()


def _decorator(**options: Any) -> Callable:
    return lambda function: _later(partial(_compiled, function, options), function)


def _compiled(function: Callable, options: dict[str, Any]) -> Any:
    from numba import config, njit
    from numba.core.dispatcher import Dispatcher

    options = {"cache": True, "nogil": True, "no_cfunc_wrapper": True, **options}  # no kernel is a C callback
    try:
        made = njit(**options)(function)
    except RuntimeError:  # Numba can write neither to this folder nor to the user's cache: to ours, or nothing is kept
        given = os.environ.get("MPI_COMPRESS_CACHE")
        config.CACHE_DIR = os.path.join(given, "kernels") if given else ""  # type: ignore[attr-defined]
        made = njit(**{**options, "cache": bool(given)})(function)
    cache: Any = getattr(made, "_cache", None)
    if isinstance(made, Dispatcher) and hasattr(cache, "_cache_file"):  # with NUMBA_DISABLE_JIT it is the function
        cache._cache_file._source_stamp, cache.load_overload = _sources(), partial(_loaded, cache)
    return made


def _loaded(cache: Any, signature: Any, context: Any) -> Any:
    """A kernel from Numba's cache; if it is not there, None, and all that compiling it needs is ready. Numba makes its types and
    functions ready first, which takes longer than to load a kernel, and which compiling alone needs."""
    from numba.core.runtime import rtsys

    rtsys.initialize(context)
    with cache._guard_against_spurious_io_errors():
        found = cache._load_overload(signature, context)
        if found is None and _to_wait:
            _to_wait.pop()()
            found = cache._load_overload(signature, context)
    if found is None:
        _make_all()
    return found


@contextmanager
def compiled_elsewhere(wait: Callable[[], None]) -> Iterator[None]:
    """Within this block another process compiles the same kernels. Before the first one that is not in the cache, or else at the
    end, `wait` is called once: it returns when the other process is done."""
    _to_wait.append(wait)
    try:
        yield
    finally:
        if _to_wait:
            _to_wait.pop()()


kernel = _decorator(error_model="numpy", fastmath=False)
inlined_kernel = _decorator(error_model="numpy", inline="always")
REASSOCIATING: Any = {"error_model": "numpy", "fastmath": {"reassoc", "contract", "arcp", "nsz"}, "forceinline": True}
reassociating_kernel = _decorator(**REASSOCIATING)
types, cgutils, ir = (_later(partial(import_module, name)) for name in ("numba.types", "numba.core.cgutils", "llvmlite.ir"))


def intrinsic(function: Callable) -> Any:
    """`numba.extending.intrinsic`, whose declared type does not fit its calls in kernels."""
    return _later(lambda: import_module("numba.extending").intrinsic(function), function)


def overload(called: Callable, **options: Any) -> Callable:
    """`numba.extending.overload`: the decorated function returns the code of `called` for the types of its arguments."""

    def put(choose: Callable) -> Callable:
        def register() -> None:
            import_module("numba.extending").overload(called, **options)(choose)

        if _waiting:
            _registrations.append(register)
        else:
            register()
        return choose

    return put


@contextmanager
def compilations(begun: Callable[[str], None], ended: Callable[[], None]) -> Iterator[None]:
    """Call these before, with its name, and after each kernel that is compiled, for Numba's cache lacks it. Those that it calls are
    within it."""
    listening: list[tuple[Any, Any]] = []

    def listen() -> None:
        events: Any = import_module("numba.core.event")

        class Listener(events.Listener):
            def on_start(self, event: Any) -> None:
                function = event.data["dispatcher"].py_func
                begun(f"{function.__module__.rpartition('.')[2]}.{function.__name__}")

            def on_end(self, event: Any) -> None:
                ended()

        listening.append((events, Listener()))
        events.register("numba:compile", listening[0][1])

    if "numba" in sys.modules:
        listen()
    else:
        _registrations.append(listen)
    try:
        yield
    finally:
        for events, listener in listening:
            events.unregister("numba:compile", listener)
        if not listening:
            _registrations.remove(listen)


def side_by_side(v: Any) -> None:
    """Check, while a kernel is typed, that v is a contiguous vector of float64: code that reads blocks of it ignores strides.

    Raises:
        TypingError: it is another array.
    """
    from numba.core.errors import TypingError

    if not (isinstance(v, types.Array) and (v.ndim, v.layout, v.dtype) == (1, "C", types.float64)):
        raise TypingError(f"a contiguous array of float64 (d,) is needed, not {v}")
