"""python -m benchmarks [NAME…]: every benchmark here, or those named."""

import importlib
import pkgutil
import sys

import benchmarks

for info in pkgutil.iter_modules(benchmarks.__path__):
    if not info.name.startswith("_") and (not sys.argv[1:] or info.name in sys.argv[1:]):
        module = importlib.import_module(f"benchmarks.{info.name}")
        if hasattr(module, "main"):
            print(f"\n{info.name}: {(module.__doc__ or '').splitlines()[0]}", flush=True)
            module.main()
