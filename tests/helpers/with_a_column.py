"""A program: `mpi-compress` with one more counted column, bytes_up, as two edits make it: `with_a_column.py ARGUMENTS…`.

The edits are a row in results/columns.py and a field in engine/counting.py; they are made in the text of the modules as they are imported.
"""

import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "mpi_compress"
ROW = '    Column("elements_up",'
FIELD = "    wire_bits: Sequence[int] = field("
EDITS = {
    "results/columns.py": (ROW, '    Column("bytes_up", "int64", "B", "bytes sent up", "counter", workers=True),\n' + ROW),
    "engine/counting.py": (FIELD, '    bytes: Sequence[int] = field(metadata={"count": lambda link, sent, read: [m.data.size for m in sent]})\n' + FIELD),
}


def edited(self: SourceFileLoader, fullname: str):
    """The code of a module, an edited one compiled anew."""
    file = Path(self.get_filename(fullname))
    old, new = EDITS.get(file.relative_to(PACKAGE).as_posix(), ("", "")) if file.is_relative_to(PACKAGE) else ("", "")
    if not old:
        return get_code(self, fullname)
    text = file.read_text()
    assert text.count(old) == 1, f"{file}: {old!r} is there {text.count(old)} times"
    return compile(text.replace(old, new), str(file), "exec", dont_inherit=True)


get_code, SourceFileLoader.get_code = SourceFileLoader.get_code, edited

from mpi_compress.cli.main import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
