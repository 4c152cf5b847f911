"""Words in figures: how wide a text is, and where it wraps."""

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache

import matplotlib as mpl
from matplotlib.cbook import is_math_text
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.text import Text
from matplotlib.textpath import text_to_path

from mpi_compress.core.tables import LOWERED, RAISED, in_math

_LETTER = 0.6  # a letter's width over its size, where Matplotlib cannot measure it
_POINTS = 72.0  # in an inch
_BETWEEN_WORDS = r"(?<![−≤≥]) (?!−)"
_OUTSIDE_MATHEMATICS = r"(?=(?:[^$]*\$[^$]*\$)*[^$]*$)"  # an even number of dollar signs follows


def drawable(text: str) -> str:
    """A text with its powers and indices in mathematics, "10$^{-4}$": Times has no raised minus and no lowered digits, and its
    other raised digits are bold."""
    return re.sub(rf"[{RAISED}]+|[{LOWERED}]+", lambda digits: in_math(digits[0]), text)


@contextmanager
def measuring() -> Iterator[None]:
    """Passes over letters that the font lacks and mathematics that cannot be read: `plotting.save` reports them."""
    with warnings.catch_warnings(), suppress(ValueError, RecursionError):
        warnings.simplefilter("ignore")
        yield


def draw_dollars(figure: Figure) -> None:
    """Let texts have their digits `drawable`, and one with dollar signs be drawn as it is written where what stands between them is
    no mathematics that can be drawn."""
    for text in figure.findobj(Text):
        if "$" not in text.get_text():
            text.set_text(drawable(text.get_text()))
        for line in filter(is_math_text, text.get_text().splitlines()):
            done = False
            with measuring():
                done = bool(text_to_path.get_text_width_height_descent(line, text.get_fontproperties(), ismath=True))
            text.set_parse_math(text.get_parse_math() and done)


@lru_cache(maxsize=4096)
def _width(text: str, size: float, family: str) -> float:
    with measuring():
        font = FontProperties(family=family, size=size)
        return float(text_to_path.get_text_width_height_descent(text, font, ismath=text.count("$") > 1)[0]) / _POINTS
    return len(text) * size * _LETTER / _POINTS


def width(text: str, size: float) -> float:
    """How wide a line of text is in the current font, in inches; `size` in points."""
    return _width(text, size, str(mpl.rcParams["font.family"][0]))


def wrapped(text: str, room: float, size: float) -> str:
    """A text in lines that are not wider than `room` in inches, broken between words, or in a word that has no room by itself. A
    difference such as f(x) − f* is one word, a bound such as ≤ 0.1, and what stands between two dollar signs."""
    return "\n".join(line for given in text.splitlines() for line in _lines(_words(given), room, size))


def _words(text: str) -> list[str]:
    """The parts of a line that are not broken."""
    has_mathematics = text.count("$") % 2 == 0  # a single dollar sign is one
    return re.split(_BETWEEN_WORDS + _OUTSIDE_MATHEMATICS * has_mathematics, text)


def _lines(words: Sequence[str], room: float, size: float) -> list[str]:
    lines = [""]
    for word in words:
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if width(longer, size) <= room:
            lines[-1] = longer
            continue
        lines += [word] if lines[-1] else []
        lines[-1] = lines[-1] or word
        while len(lines[-1]) > 1 and width(lines[-1], size) > room and "$" not in word:
            whole = lines.pop()
            fits = max((n for n in range(1, len(whole)) if width(whole[:n], size) <= room), default=1)
            lines += [whole[:fits], whole[fits:]]
    return lines
