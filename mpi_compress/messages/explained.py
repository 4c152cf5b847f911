"""One message taken apart: its bytes field by field, and what each field holds."""

from typing import Any

import numpy as np

from mpi_compress.core.tables import plain
from mpi_compress.messages.batch import Batch
from mpi_compress.messages.fields import Reader
from mpi_compress.messages.link import Link

_NAMES = {"counts": "count", "numbers": "float", "floats": "floats", "signs": "signs", "integers": "integers", "signed": "integers"}
_READ = {*_NAMES, "skip", "bytes", "wholes"}


class _Noting(Reader):
    """A reader of one message that notes the fields that it is asked for, and not those that these are made of."""

    def __init__(self, *given: Any):
        super().__init__(*given)
        self.fields: list[tuple[int, int, str, Any]] = []  # its first byte, the byte after its last, what it is, its value
        self.inside = False

    def __getattribute__(self, name: str) -> Any:
        read = super().__getattribute__(name)
        return self._noted(name, read) if name in _READ and not self.inside else read

    def _noted(self, name: str, read: Any) -> Any:
        def noted(*given: Any, **named: Any) -> Any:
            at, self.inside = self.at.item(), True
            value, self.inside = read(*given, **named), False
            held = value if name != "skip" else self.data[at : self.at.item()]
            self.fields.append((at, self.at.item(), _NAMES.get(name) or given[1], held.item() if held.size == 1 else held.ravel()))
            return value

        return noted


def explained(link: Link, message: Batch) -> str:
    """The fields of a message as a table; bytes that its codec does not read field by field are one field."""
    r = _Noting(message.data, np.zeros(1, dtype=np.int64), link.codec.float_format, message.ends)
    content, data = link.read(r)[0], message.raw
    sparse, noted = content.sparse(), [field for field in r.fields if field[0] < field[1]]
    places, ends = "" if sparse is None else sparse.indices.tolist(), [0, *(b for _, b, _, _ in noted)]
    coded = zip(ends, [*(a for a, *_ in noted), data.size], strict=True)
    noted += [(a, b, f"coded by {link.codec.name}", places) for a, b in coded if a < b]
    noted.sort(key=lambda field: field[0])
    rows = [[f"{a}–{b - 1}", what, data[a:b].tobytes().hex(" ", -4)[:36], str(value)[:60]] for a, b, what, value in noted]
    total = f"{8 * data.size} bits; {link.paper_bits(content):g} by the paper's formula"
    return "\n".join([*plain(["bytes", "field", "hexadecimal", "value"], rows), total])
