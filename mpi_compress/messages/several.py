"""Messages of several links in one."""

from typing import Any, Self

import numpy as np

from mpi_compress.core.errors import UserError
from mpi_compress.core.sums import added
from mpi_compress.messages.kinds import Bytes, Compressed, Several
from mpi_compress.messages.link import Link, Message


class SeveralLink(Link):
    """A link whose messages hold a message of each of its `parts`, one after the other, with one length before all."""

    in_bulk = False

    def __init__(self, *links: Link):
        super().__init__(links[0].compressor, links[0].codec, links[0].dim, parts=links)

    def at(self, **known: Any) -> Self:
        raise UserError(f"{', '.join(known)} cannot be set here: a message has parts of several links")

    def join(self, *parts: Message) -> Message:
        """One message of a message of each link, in their order."""
        contents = [link.unpack(part) for link, part in zip(self.parts, parts, strict=True)]
        return Message(np.concatenate([part.data for part in parts]), Several(contents))

    @property
    def silence(self) -> Several:
        return Several([link.silence for link in self.parts])

    def write(self, compressed: Compressed) -> Bytes:
        assert isinstance(compressed, Several)
        return np.concatenate([link.write(part) for link, part in zip(self.parts, compressed.parts, strict=True)])

    def read(self, data: Bytes, at: int = 0) -> tuple[Several, int]:
        parts = []
        for link in self.parts:
            part, at = link.read(data, at)
            parts.append(part)
        return Several(parts), at

    def planned_wire_bits(self, T: Any) -> Any:
        return None

    def paper_bits(self, content: Compressed) -> float:
        assert isinstance(content, Several)
        return added(link.paper_bits(part) for link, part in zip(self.parts, content.parts, strict=True))
