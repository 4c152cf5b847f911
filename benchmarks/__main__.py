"""python -m benchmarks [NAME…]: every benchmark here, or those named."""

import importlib
import pkgutil
import sys

import benchmarks

names = [info.name for info in pkgutil.iter_modules(benchmarks.__path__) if not info.name.startswith("_")]
for wrong in set(sys.argv[1:]) - set(names):
    sys.exit(f"no benchmark called '{wrong}'; there are: {', '.join(names)}")
for name in sys.argv[1:] or names:
    module = importlib.import_module(f"benchmarks.{name}")
    print(f"\n{name}: {(module.__doc__ or '').splitlines()[0]}", flush=True)
    module.main()
