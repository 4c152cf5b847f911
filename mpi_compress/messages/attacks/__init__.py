"""What byzantine workers send in place of the truth."""

from mpi_compress.core.registry import import_all
from mpi_compress.messages.attacks.base import Attack, Byzantine, attacks

import_all(__name__, attacks)

__all__ = ["Attack", "Byzantine", "attacks"]
