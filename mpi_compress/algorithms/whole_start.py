"""What methods share that send compressed differences, and whose first messages may be whole gradients."""

from functools import cached_property
from typing import Any, Literal

from mpi_compress.algorithms.base import Algorithm, check_adding_up
from mpi_compress.algorithms.sampling import check_batch
from mpi_compress.messages.link import Link, of_all_coordinates

First = Literal["gradient", "compressed"]


class WholeStart(Algorithm):
    """A method whose nodes add up what they hear. With first = "gradient" round 0 sends all d coordinates, which are counted."""

    first: First = "gradient"  # what round 0 sends: whole gradients, or compressed ones

    def check(self) -> None:
        check_adding_up(self)
        if self.batch is not None:
            check_batch(self.batch, self.setting.numbers["N"])

    def starts_whole(self, k: int) -> bool:
        """True if round k sends whole gradients."""
        return k == 0 and self.first == "gradient"

    def needs_all(self, node: Any, k: int) -> bool:
        return self.starts_whole(k)

    @cached_property
    def whole(self) -> Link:
        """The uplink of whole gradients."""
        return of_all_coordinates(self.up)

    def uplink(self, node: Any, k: int) -> Link:
        return self.whole if self.starts_whole(k) else self.up
