"""Progress is a bar where somebody watches, also on the terminal of the mpiexec that started this process; and numbers and names in words."""

import fcntl
import os
import re
import struct
import sys
import termios
from select import select
from types import SimpleNamespace

import pytest

from mpi_compress.core import progress, terminal
from mpi_compress.core.errors import nearest
from mpi_compress.core.progress import bits_text
from mpi_compress.core.tables import shown
from mpi_compress.core.terminal import wrapped

TRIAL = "trial {} of {} in this stage"


@pytest.fixture
def processes(tmp_path, monkeypatch):
    """Standard error is a pipe, and the parents of this process are 7, a helper of mpiexec, and 5, mpiexec; 3 is a shell."""
    for number, (name, parent, place) in {7: ("hydra_pmi_proxy", 5, "pipe:[1]"), 5: ("mpiexec", 3, "/dev/pts/9"), 3: ("bash", 1, "/dev/pts/8")}.items():
        folder = tmp_path / str(number)
        (folder / "fd").mkdir(parents=True)
        (folder / "comm").write_text(f"{name}\n")
        (folder / "stat").write_text(f"{number} ({name} (x) y) S {parent} 1 1")
        (folder / "fd" / "2").symlink_to(place)
    reading, writing = os.pipe()
    monkeypatch.setattr(terminal, "_PROCESSES", tmp_path)
    monkeypatch.setattr(os, "getppid", lambda: 7)
    monkeypatch.setattr(terminal, "sys", SimpleNamespace(stderr=os.fdopen(writing, "w"), modules={}))
    terminal.launchers_terminal.cache_clear()
    yield tmp_path
    os.close(reading)
    terminal.launchers_terminal.cache_clear()


def test_the_terminal_of_mpiexec_is_found(processes):
    assert str(terminal.launchers_terminal()) == "/dev/pts/9"
    assert terminal.has_bar()
    assert terminal.columns(terminal.sys.stderr) == 80  # that terminal is not here


def test_no_terminal_where_mpiexec_writes_elsewhere(processes):
    link = processes / "5" / "fd" / "2"
    link.unlink()
    link.symlink_to("/tmp/log")
    assert terminal.launchers_terminal() is None
    assert not terminal.has_bar()


def test_no_terminal_where_no_mpiexec_started_this(processes, monkeypatch):
    monkeypatch.setattr(os, "getppid", lambda: 3)
    assert terminal.launchers_terminal() is None
    monkeypatch.setattr(os, "getppid", lambda: 99)  # gone, or a system without /proc
    terminal.launchers_terminal.cache_clear()
    assert terminal.launchers_terminal() is None


def test_no_terminal_where_standard_error_goes_into_a_file(processes, tmp_path, monkeypatch):
    with (tmp_path / "log").open("w") as log:
        monkeypatch.setattr(terminal, "sys", SimpleNamespace(stderr=log, modules={}))
        assert terminal.launchers_terminal() is None


def on_terminal(monkeypatch, columns):
    """Make standard error a terminal of so many columns; what reads all that it shows."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50 * bool(columns), columns, 0, 0))
    monkeypatch.setattr("sys.stderr", os.fdopen(theirs, "w"))
    monkeypatch.setenv("TERM", "xterm")
    for name in ("COLUMNS", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    screen = os.fdopen(ours, "rb", buffering=0)
    return lambda: b"".join(iter(lambda: screen.read(10**5) if select([screen], [], [], 0)[0] else b"", b"")).decode()


@pytest.mark.parametrize("columns", [0, 40, 80, 200])
def test_a_bar_shows_share_and_time_left_and_is_gone_at_the_end(columns, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    told = on_terminal(monkeypatch, columns)
    with progress.Progress("a label that is longer than a terminal of so many columns is wide", 100, False, progress.turn_text(2, 5)) as seen:
        for k in range(51):
            seen(k, 0.5, 1000.0)
            now[0] += 1.0
        progress.print_line("a line")
    *frames, line, rest = re.split("[\r\n ]*[\r\n]", told())
    assert max(map(len, frames)) < (columns or 80)  # a letter in the last column could begin another line
    assert " (run 2 of 5)   50 % " in frames[-1]
    assert ("  50 s left of this run" in frames[-1]) == (columns != 40)
    assert ("1 rounds/s, round 50 of 100, loss 0.5, 1 kbit up" in frames[-1]) == (columns == 200)
    assert (line, rest.strip()) == ("a line", "")


def test_lines_on_a_terminal_are_broken_between_words_below_their_text_and_heads_are_bold(monkeypatch):
    told = on_terminal(monkeypatch, 40)
    progress.print_line("  name    twenty letters or more of text and 1000.123 Mbit\n" + "x" * 50)
    assert told().rpartition(" \r")[2].splitlines() == ["  name    twenty letters or more of text", "          and 1000.123 Mbit", "x" * 50]
    assert shown(sys.stderr, ["a"], [["x"]]) == ["\x1b[1ma\x1b[0m", "x"]
    assert shown(sys.stderr, HEADS, ROWS, ("time",))[-2:] == ["left out for width: time; a wider", "  terminal or `| cat` shows them"]
    monkeypatch.setenv("NO_COLOR", "1")
    assert shown(sys.stderr, ["a"], [["x"]]) == ["a", "x"]


def test_a_line_in_a_pipe_is_whole_whatever_columns_says_and_help_fits(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "20")
    for fits, lines in ((False, 1), (True, 3)):
        terminal.say("data: tridiagonal, other data, 1024 × 2048", fits=fits)
        assert len(capsys.readouterr().out.splitlines()) == lines
    terminal.say()
    assert capsys.readouterr().out == "", "no line is no empty one"


HEADS, ROWS = ["run", "loss", "time", "ended by"], [["alike, the first of all the methods, 10 %", "0.123456", "3 s", "300 rounds"],
                                                   ["alike, GD", "0.2", "4 s", "suboptimality ≤ 0.0001"]]  # fmt: skip


def test_a_table_leaves_out_what_is_less_needed_then_shortens_texts_and_never_a_number(monkeypatch):
    for columns in (200, 80, 60, 40, 24):
        monkeypatch.setenv("COLUMNS", str(columns))
        lines = shown(sys.stdout, HEADS, ROWS, ("time", "ended by"))
        assert max(map(len, lines)) <= columns
        assert " ".join(map(str.strip, lines[3:])) == "left out for width: time, ended by; a wider terminal or `| cat` shows them" * (columns < 80)
        assert lines[1].endswith("0.123456" if columns <= 60 else "300 rounds")
        assert ("time" in lines[0]) == (columns >= 80)
    assert lines[:3] == ["run        loss", "…the…10 %  0.123456", "…GD        0.2"]
    monkeypatch.setenv("COLUMNS", "60")
    lines = shown(sys.stdout, [*HEADS, "down"], [[*row, "–"] for row in ROWS], ("time", "down", "ended by"))
    assert lines[3].startswith("left out for width: down, time"), "what has no value first"
    monkeypatch.setenv("COLUMNS", "36")
    lines = shown(sys.stdout, ["method", "loss ≤ 1", "≤ 0.1"], [["a method of many words", "1.5 kbit (1 … 2)", "not reached ¹"]])
    assert lines == ["method   loss ≤ 1  ≤ 0.1", "a…words  1.5 kbit  not reached ¹", "left out for width: ranges; a wider", "  terminal or `| cat` shows them"]


def test_columns_go_before_two_labels_would_be_cut_to_the_same(monkeypatch):
    monkeypatch.setenv("COLUMNS", "44")
    rows = [[f"MARINA, {name}, n = 10, heterogeneity = 0.0", "8f5801ef24a1", "to do"] for name in ("PermK", "RandK")]
    lines = shown(sys.stdout, ["label", "run id", "state"], [*rows, ["EF21", "9db269cf138e", "to do"]], ("run id",))
    assert [line[:13] for line in lines[1:4]] == ["MARINA, PermK", "MARINA, RandK", "EF21         "]
    assert lines[4].startswith("left out for width: run id;")


def test_a_number_and_its_unit_stay_on_one_line():
    text = "  wall      3.828 s: read 0.0444 s, rounds 0.439 s, 12.5 kbit up, 4 GiB"
    for letters in range(20, 80):
        assert not any(re.match(r" +(s|kbit|GiB)\b", line) for line in wrapped(text, letters).splitlines())
    assert " ".join(wrapped(text, 30).split()) == " ".join(text.split())


def test_what_all_labels_begin_with_goes_first(monkeypatch):
    labels = [f"CAT on a9a, tuned, T = {t}, shuffled rows, four workers" for t in ("10", "100", "best of all")]
    monkeypatch.setenv("COLUMNS", "40")
    assert shown(sys.stdout, ["run", "loss"], [[label, "0.123456"] for label in labels])[1].startswith("…T = 10,…four workers ")


@pytest.mark.parametrize(
    ("bits", "text"),
    [(0, "0 bit"), (999, "999 bit"), (1000, "1 kbit"), (1024, "1.024 kbit"), (2.5e6, "2.5 Mbit"), (3e9, "3 Gbit"), (4e15, "4000 Tbit")],
)
def test_bits_are_in_units_of_1000(bits, text):
    assert bits_text(bits) == text


def test_lines_say_which_run_it_is_and_how_long_it_takes(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(progress, "_last_line", 0.0)
    with progress.Progress("GD", 100, False, progress.turn_text(2, 5)) as seen:
        for k in range(5):
            seen(k, 0.5 if k % 2 == 0 else None, 1000.0 * k)
            now[0] += 30.0
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["GD (run 2 of 5): round 3 of 100, loss 0.5, 3 kbit up, 48 min left of this run"]
    with progress.Progress("GD", None, False) as seen:
        now[0] += 61.0
        seen(3, 0.25, 0.0)
    assert capsys.readouterr().err == "GD: round 3, loss 0.25, 0 bit up\n"
    with progress.Progress("GD", None, False) as seen:
        now[0] += 61.0
        seen(7, None, 0.0)
    assert capsys.readouterr().err == "GD: round 7, 0 bit up\n", "it goes on between two logged rounds"


def test_many_short_trials_are_told_once_a_minute(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(progress, "_last_line", 0.0)
    for trial in range(1, 181):
        with progress.Progress("EF21", 10, False, progress.turn_text(trial, 180, TRIAL)) as seen:
            for k in range(11):
                seen(k, 0.5, 0.0)
                now[0] += 0.1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3  # of 198 seconds
    assert lines[0].startswith("EF21 (trial 55 of 180 in this stage): round 6 of 10, loss 0.5, 0 bit up")


def test_rounds_of_an_earlier_process_make_no_pace(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(progress, "has_bar", lambda: True)
    with progress.Progress("GD", 10_000, False, progress.turn_text(3, 20, TRIAL)) as seen:
        for k in (6000, 6001, 6002):
            seen(k, 0.5, 0.0)
            now[0] += 1.0
    shown = capsys.readouterr().err.split("\r")[-3]
    assert shown.startswith("GD (trial 3 of 20 in this stage)   60 % ")
    assert "1.1 h left of this trial" in shown
    assert progress.turn_text(1, 1, TRIAL) == " (trial 1 of 1 in this stage)", "what is left is not of the only run"
    assert progress.turn_text() == ""


def test_a_first_round_that_compiles_makes_no_pace(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(progress, "has_bar", lambda: True)
    with progress.Progress("GD", 40_000, False) as seen:
        for k, seconds in enumerate((60.0, 0.2, 0.2, 0.2)):
            seen(k, 0.5, 0.0)
            now[0] += seconds
    frames = capsys.readouterr().err.split("\r")
    assert [found[0] for frame in frames if (found := re.search(r"\S+ \S+ left", frame))] == ["2.2 h left"] * 2


@pytest.mark.parametrize(("seconds", "text"), [(3, "3 s"), (90, "1.5 min"), (7200, "2 h"), (3e5, "3.5 d")])
def test_times_are_in_readable_units(seconds, text):
    assert progress.time_text(seconds) == text


def test_a_wrong_name_is_told_the_nearest_and_all_or_the_nearest_of_many():
    assert nearest("x", [], "table") == "no table called 'x', nor any other here"
    assert nearest("Stp", ["stop", "seed", "seed"], "key") == "no key called 'Stp'; did you mean 'stop'? there are: seed, stop"
    assert nearest("zzz", ["a"], "key") == "no key called 'zzz'. there are: a"
    many = nearest("top", ["top-k", *(f"a{i}" for i in range(30))], "compressor")
    assert many.startswith("no compressor called 'top'; did you mean 'top-k'? there are 31, such as: top-k, ")
    assert many.count(", ") == 1 + 9
