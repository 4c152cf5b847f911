"""What byzantine workers send in place of the truth."""

from mpi_compress.core.registry import import_all
from mpi_compress.messages.attacks.base import Attack, Byzantine, attacks

register = attacks.register
import_all(__name__)

__all__ = ["Attack", "Byzantine", "attacks", "register"]
