"""One message taken apart: its bytes field by field, and what each field holds."""

from typing import Any

from mpi_compress.core.tables import plain
from mpi_compress.messages.codecs.base import FieldCodec
from mpi_compress.messages.fields import Reader
from mpi_compress.messages.link import Link

_NAMES = {"count": "count", "number": "float", "floats": "floats", "signs": "signs", "integers": "integers", "signed": "integers"}
_READ = {*_NAMES, "take", "byte", "whole"}


class _Noting(Reader):
    """A reader that notes the fields that it is asked for, and not those that these are made of."""

    def __init__(self, *given: Any):
        super().__init__(*given)
        self.fields: list[tuple[int, int, str, Any]] = []  # its first byte, the byte after its last, what it is, its value
        self.inside = False

    def __getattribute__(self, name: str) -> Any:
        read = super().__getattribute__(name)
        return self._noted(name, read) if name in _READ and not self.inside else read

    def _noted(self, name: str, read: Any) -> Any:
        def noted(*given: Any, **named: Any) -> Any:
            at, self.inside = self.at, True
            value, self.inside = read(*given, **named), False
            self.fields.append((at, self.at, _NAMES.get(name) or given[-1], value))
            return value

        return noted


def explained(link: Link, data: Any) -> str:
    """The fields of a message as a table; bytes that its codec does not read field by field are one field."""
    r, known = _Noting(data, 0, link.codec.float_format), link.compressor.known(link.dim)
    if isinstance(link.codec, FieldCodec):
        link.codec.read(r, link.dim, link.compressor.makes, known)
    content = link.read(data)[0]
    sparse, noted = content.sparse(), [field for field in r.fields if field[0] < field[1]]
    places, ends = "" if sparse is None else sparse.indices.tolist(), [0, *(b for _, b, _, _ in noted)]
    coded = zip(ends, [*(a for a, *_ in noted), data.size], strict=True)
    noted += [(a, b, f"coded by {link.codec.name}, its indices", places) for a, b in coded if a < b]
    rows = []
    for a, b, what, value in sorted(noted, key=lambda field: field[0]):
        held = str(places if what.endswith(("indices", "bitmap")) else value)
        rows.append([f"{a}–{b - 1}", what.removesuffix(", its indices"), data[a:b].tobytes().hex(" ", -4)[:36], held[:60]])
    total = f"{8 * data.size} bits; {link.paper_bits(content):g} by the paper's formula"
    return "\n".join([*plain(["bytes", "field", "hexadecimal", "value"], rows), total])
