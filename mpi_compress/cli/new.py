"""`mpi-compress new [FOLDER] [--package NAME]`: what to begin with, as it lies in the folders `first` and `package`."""

import re
import sys
from argparse import Namespace
from pathlib import Path

from mpi_compress.core.errors import UserError, writing
from mpi_compress.core.terminal import say

FILES = {"job.toml": "first/job.toml", "mine.py": "first/mine.txt", "README.md": "first/README.md"}  # one in .py would be ours
PACKAGE = {
    "pyproject.toml": "package/pyproject.toml", "README.md": "package/README.md", "job.toml": "package/job.toml",
    "MODULE/__init__.py": "", "MODULE/compressors.py": "first/mine.txt", "MODULE/methods.py": "package/methods.txt",
    "tests/test_parts.py": "package/test_parts.txt",
}  # fmt: skip
"""Templates by the name of the file; MODULE and PACKAGE stand for the names of a package."""


def act(options: Namespace) -> int:
    name = options.package
    module = _module(name) if name else ""
    folder = Path(options.folder or name or ".")
    files = {file.replace("MODULE", module): template for file, template in (PACKAGE if name else FILES).items()}
    for file in files:
        if (folder / file).exists():
            raise UserError(f"{folder / file}: is there already; name another folder")
    for file, template in files.items():
        text = (Path(__file__).parent / template).read_text(encoding="utf-8") if template else f'"""Parts of {name}."""\n'
        if name:
            text = text.replace("PACKAGE", name).replace("MODULE", module)
        with writing(folder / file, "new"):
            (folder / file).write_text(text, encoding="utf-8")
        say(str(folder / file))
    where = "" if folder == Path() else f"cd {folder} && "
    say(f"`{where}{'pip install -e . && ' * bool(name)}mpi-compress run job.toml` runs it; README.md says what else to type")
    return 0


def _module(name: str) -> str:
    module = name.replace("-", "_").lower()
    if not re.fullmatch(r"[A-Za-z]\w*(-\w+)*", name, re.ASCII) or module in {*sys.stdlib_module_names, "mpi_compress"}:
        raise UserError(f"--package: {name!r} was given; a name of letters, digits and hyphens is required, such as my-parts")
    return module
