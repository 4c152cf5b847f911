import sys
from importlib import import_module
from pkgutil import iter_modules

import benchmarks

for info in iter_modules(benchmarks.__path__):
    if not info.name.startswith("_") and (len(sys.argv) == 1 or info.name in sys.argv[1:]):
        print(f"\n== {info.name}")
        import_module(f"benchmarks.{info.name}").main()
