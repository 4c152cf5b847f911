"""python -m benchmarks [NAME…]: every module here that has a `main`, or those named."""

import importlib
import pkgutil
import sys

import benchmarks

for info in pkgutil.iter_modules(benchmarks.__path__):
    if not sys.argv[1:] or info.name in sys.argv[1:]:
        if info.name == "__main__":
            continue
        module = importlib.import_module(f"benchmarks.{info.name}")
        if hasattr(module, "main"):
            print(f"\n{info.name}: {(module.__doc__ or '').splitlines()[0]}", flush=True)
            module.main()
