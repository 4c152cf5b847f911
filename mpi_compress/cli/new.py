"""`mpi-compress new [FOLDER]`: a job, a compressor and a README to begin with, as they lie in the folder `first`."""

from argparse import Namespace
from pathlib import Path

from mpi_compress.core.errors import UserError, writing

_FIRST = Path(__file__).with_name("first")
FILES = {"job.toml": "job.toml", "mine.py": "mine.txt", "README.md": "README.md"}  # by name; one in .py would be a module of ours


def act(options: Namespace) -> int:
    folder = Path(options.folder)
    for name in FILES:
        if (folder / name).exists():
            raise UserError(f"{folder / name}: is there already; name another folder")
    for name, template in FILES.items():
        with writing(folder / name, "new"):
            (folder / name).write_bytes((_FIRST / template).read_bytes())
        print(folder / name)
    where = "" if folder == Path() else f"cd {folder} && "
    print(f"`{where}mpi-compress run job.toml` runs it; README.md says what else to type")
    return 0
