"""A program: `mpi-compress` with one more counted column, bytes_up, as three lines make it: `with_a_column.py ARGUMENTS…`.

They are a row in results/columns.toml, and in engine/counting.py a field and how it is counted; they are put into the text of the files
as these are read.
"""

import sys
import tomllib
from importlib.machinery import SourceFileLoader
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "mpi_compress"
ROW = '    { name = "elements_up",'
FIELD, COUNT = "    wire_bits: NDArray[np.int64]\n", "        counts = cls(8 * (LENGTH_BYTES + lengths), "
NEW_ROW = '    { name = "bytes_up", dtype = "int64", unit = "B", label = "bytes sent up", since = "counter", workers = true },\n'
EDITS = {"engine/counting.py": {FIELD: f"    bytes: NDArray[np.int64]\n{FIELD}", COUNT: COUNT.replace("cls(", "cls(lengths, ")}}


def edited(self: SourceFileLoader, fullname: str):
    """The code of a module, an edited one compiled anew."""
    file = Path(self.get_filename(fullname))
    edits = EDITS.get(file.relative_to(PACKAGE).as_posix(), {}) if file.is_relative_to(PACKAGE) else {}
    if not edits:
        return get_code(self, fullname)
    text = file.read_text()
    for line, new in edits.items():
        assert text.count(line) == 1, f"{file}: {line!r} is there {text.count(line)} times"
        text = text.replace(line, new)
    return compile(text, str(file), "exec", dont_inherit=True)


get_code, SourceFileLoader.get_code = SourceFileLoader.get_code, edited
loads, tomllib.loads = tomllib.loads, lambda text: loads(text.replace(ROW, NEW_ROW + ROW))

from mpi_compress.cli.main import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
