"""Numbers of bits in words."""

import pytest

from mpi_compress.core.progress import bits_text


@pytest.mark.parametrize(
    ("bits", "text"),
    [(0, "0 bit"), (999, "999 bit"), (1000, "1 kbit"), (1024, "1.024 kbit"), (2.5e6, "2.5 Mbit"), (3e9, "3 Gbit"), (4e15, "4000 Tbit")],
)
def test_bits_are_in_units_of_1000(bits, text):
    assert bits_text(bits) == text
