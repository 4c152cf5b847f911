"""Numbers of bits in words."""

import pytest

from mpi_compress.core import progress
from mpi_compress.core.progress import bits_text


@pytest.mark.parametrize(
    ("bits", "text"),
    [(0, "0 bit"), (999, "999 bit"), (1000, "1 kbit"), (1024, "1.024 kbit"), (2.5e6, "2.5 Mbit"), (3e9, "3 Gbit"), (4e15, "4000 Tbit")],
)
def test_bits_are_in_units_of_1000(bits, text):
    assert bits_text(bits) == text


def test_lines_say_which_run_it_is_and_how_long_all_take(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with progress.Progress("GD", 100, False, progress.Turn(2, 5, 3)) as seen:
        for k in range(5):
            seen(k, 0.5 if k % 2 == 0 else None, 1000.0 * k)
            now[0] += 30.0
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["GD (run 2 of 5): round 3 of 100, loss 0.5, 3 kbit up, 48 min left, at most 3.3 h for all"]
    with progress.Progress("GD", None, False) as seen:
        now[0] += 61.0
        seen(3, 0.25, 0.0)
    assert capsys.readouterr().err == "GD: round 3, loss 0.25, 0 bit up\n"


def test_rounds_of_an_earlier_process_make_no_pace(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(progress, "has_bar", lambda: True)
    with progress.Progress("GD", 10_000, False, progress.Turn(3, None)) as seen:
        for k in (6000, 6001, 6002):
            seen(k, 0.5, 0.0)
            now[0] += 1.0
    shown = capsys.readouterr().err.split("\r")[-3]
    assert shown.startswith("GD (trial 3)   60 % ")
    assert "1.1 h left" in shown


@pytest.mark.parametrize(("seconds", "text"), [(3, "3 s"), (90, "1.5 min"), (7200, "2 h"), (3e5, "3.5 d")])
def test_times_are_in_readable_units(seconds, text):
    assert progress.time_text(seconds) == text
