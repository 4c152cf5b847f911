"""The terminal: how wide it is, its colours, lines broken between words, and the line of it that shows progress."""

import os
import re
import stat
import sys
import textwrap
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TextIO

BOLD, RED, GREEN = "1", "31", "32"
_LAUNCHERS = ("mpiexec", "mpirun", "prterun", "prted", "orted", "hydra_pmi_proxy")  # with their helpers, by their first letters
_PROCESSES = Path("/proc")
_USUAL = os.terminal_size((80, 24))
_GAP = re.compile(r"\S {2,}(?=\S)")
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(s|min|h|bit|[kMG]bit|[kMG]?B|[MG]iB)\b)")  # no line ends there
_COLOUR = re.compile(r"(\x1b\[(?:0|1|31|32)m)")  # as `coloured` writes them
LEAST = 12  # letters that are left of a text
_LEAST_BAR, _LARGEST_BAR = 10, 20
_has_progress = False  # True while a line shows it


def has_bar() -> bool:
    """True if progress is a bar rather than lines."""
    return "ipykernel" in sys.modules or is_watched(sys.stderr)


def is_watched(stream: TextIO) -> bool:
    """True if a stream goes to a terminal, also by mpiexec."""
    return stream.isatty() or (stream is sys.stderr and launchers_terminal() is not None)


@cache
def launchers_terminal() -> Path | None:
    """The terminal of the mpiexec that started this process, if mpiexec passes standard error on to it. It is found on Linux alone,
    and on mpiexec's own host."""
    try:
        if not stat.S_ISFIFO(os.fstat(sys.stderr.fileno()).st_mode):
            return None
        launcher, parent = 0, os.getppid()
        while (_PROCESSES / str(parent) / "comm").read_text().startswith(_LAUNCHERS):
            behind_name = (_PROCESSES / str(parent) / "stat").read_text().rpartition(")")[2]
            launcher, parent = parent, int(behind_name.split()[1])
        shown_on = Path(os.readlink(_PROCESSES / str(launcher) / "fd" / "2")) if launcher else None
    except (OSError, ValueError):
        return None
    return shown_on if shown_on is not None and shown_on.as_posix().startswith(("/dev/pts/", "/dev/tty")) else None


def columns(stream: TextIO) -> int:
    """The columns of a stream's terminal, of a pipe that of mpiexec; the usual ones where it does not say."""
    terminal = None if stream.isatty() else launchers_terminal()
    with suppress(OSError, ValueError):
        opened = stream.fileno() if terminal is None else os.open(terminal, os.O_RDONLY | os.O_NOCTTY)
        try:
            return os.get_terminal_size(opened).columns or _USUAL.columns
        finally:
            if terminal is not None:
                os.close(opened)
    return _USUAL.columns


def room(stream: TextIO) -> int | None:
    """The letters of a line that a table or a text should fit into: $COLUMNS, or a terminal's; None where any number will do."""
    if (given := os.environ.get("COLUMNS", "")).isdecimal() and int(given):
        return int(given)
    return columns(stream) if is_watched(stream) else None


def coloured(text: str, colour: str, stream: TextIO) -> str:
    """A text in a colour, if the stream is a terminal and neither it nor $NO_COLOR is against colours."""
    is_plain = not (colour and stream.isatty()) or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if is_plain else f"\x1b[{colour}m{text}\x1b[0m"


def printable(text: str, but: str = "") -> str:
    """A text with escape sequences, signs that turn the direction of writing, and whatever else is no letter, written as Python
    does, "\\x1b", `but` these."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in but else ascii(c)[1:-1] for c in text)


def _but_colours(text: str) -> str:
    """Lines with our own colours, and else as `printable`."""
    return "".join(part if i % 2 else printable(part, "\n\t") for i, part in enumerate(_COLOUR.split(text)))


def wrapped(text: str, letters: int | None) -> str:
    """Printable lines broken between words, never within one, to at most so many letters. A line goes on below the text behind its
    first gap of two blanks, as in a table, or indented by two more."""
    text = _but_colours(text)
    if letters is None:
        return text
    lines = []
    for line in text.splitlines() or [""]:
        gap = _GAP.search(line, 0, letters // 2)
        indent = " " * (gap.end() if gap else len(line) - len(line.lstrip()) + 2)
        by = textwrap.TextWrapper(letters, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
        lines += [line] if len(_COLOUR.sub("", line)) <= letters else by.wrap(_BEFORE_UNIT.sub("\xa0", line))
    return "\n".join(lines).replace("\xa0", " ")


def say(*lines: str, fits: bool = False) -> None:
    """Print lines to standard output, as wide as its terminal; in a pipe they are whole, but those of help that `fits` $COLUMNS."""
    letters = room(sys.stdout) if fits or is_watched(sys.stdout) else None
    if lines:
        print(*(wrapped(line, letters) for line in lines), sep="\n")


def shortened(text: str, letters: int) -> str:
    """A text of at most so many letters: its first and its last words, or letters where a word is too long."""
    if len(text) <= letters:
        return text
    first, last = text[: (letters - 1) // 2], text[len(text) - letters // 2 :]
    begun, ended = first.rpartition(" ")[0], last.partition(" ")[2]
    return f"{begun or first.rstrip()}…{ended or last.lstrip()}"


def show(label: str, share: float | None = None, parts: Sequence[str] = (), turn: str = "") -> None:
    """Show progress on the terminal's line: a label and which of several it is, a share as number and bar, and of further parts the
    first ones, as many as fit."""
    letters = columns(sys.stderr) - 1
    number = "" if share is None else f"  {100 * share:3.0f} % "
    least = len(number) + (0 if share is None else _LEAST_BAR)
    label = shortened(printable(label), max(LEAST, letters - least - len(turn) - sum(len(part) + 2 for part in parts[:2]))) + turn
    told = ""
    for part in parts:
        if len(label) + least + len(told) + len(part) + 2 > letters:
            break
        told += f"{', ' if told else '  '}{part}"
    size = 0 if share is None else max(0, min(_LARGEST_BAR, letters - len(label) - len(number) - len(told)))
    done = round(size * (share or 0.0))
    full, empty = "█░" if "utf" in str(sys.stderr.encoding).lower() else "#-"
    _put(f"{label}{number}{full * done}{empty * (size - done)}{told}"[:letters])


def clear() -> None:
    """Take away what shows progress, of this process or of another one on the same terminal."""
    if _has_progress or is_watched(sys.stderr):
        _put("")


def _put(text: str) -> None:
    global _has_progress
    with suppress(OSError, ValueError):  # closed
        sys.stderr.write(f"\r{text.ljust(columns(sys.stderr) - 1)}" + "\r" * (not text))
        sys.stderr.flush()
    _has_progress = bool(text)
