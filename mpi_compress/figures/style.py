"""How figures look: their sizes and fonts on a screen and in a paper, and what tells methods apart."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_params_from_file
from matplotlib.colors import to_hex, to_rgb

from mpi_compress.core.errors import UserError
from mpi_compress.evidence.lines import Namer, method_and_values, name_in_paper, name_of

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A4FB5", "#8C5A2B", "#9B1B30", "#000000")
"""Okabe and Ito's colours, which colour-blind readers can distinguish; violet in place of their yellow, then brown and dark red."""
_DASHES = (
    "-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (6, 1.5, 1.2, 1.5)), (0, (6, 1.2, 1.2, 1.2, 1.2, 1.2)), (0, (10, 2)),
    (0, (10, 1.5, 3, 1.5)), (0, (3, 1.2, 3, 1.2, 1, 1.2)),
)  # fmt: skip
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_TUNED = r", tuned (?!to )[^:]*| \((not settled|trials missed the target)\)"  # of a line's name
_LIGHTEST, _DARKEST = 0.4, 0.45  # shares of white, and of black, at the ends of a ramp

COLUMN, HEIGHT = 3.3, 2.3  # inches: the width of a paper's column, and the height of one plot
PAGE_WIDTH, PANEL = 6.9, 1.65  # inches: the width of a paper's page, and the height of one of three panels in a row
NARROWEST = 1.9  # inches: a panel; where a figure has no room for more, it has fewer panels in a row

_FILES = (Path(__file__).with_name(f"{name}.mplstyle") for name in ("screen", "paper"))
STYLE, _OF_PAPERS = (rc_params_from_file(file, use_default_template=False) for file in _FILES)

_INCHES = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72.27}  # pt: TeX's point
_LEAST, _MOST = 1.5, 20.0  # inches


@dataclass(frozen=True)
class Style:
    """What a figure is for."""

    settings: Any  # Matplotlib's
    titled: bool  # False: a paper's caption says what a title would
    name: Namer  # names a line; a paper's text says what was tuned
    suffix: str  # the file's


STYLES = {"screen": Style(STYLE, True, name_of, ".png"), "paper": Style({**STYLE, **_OF_PAPERS}, False, name_in_paper, ".pdf")}


def style_of(name: str) -> Style:
    """A style by its name; UserError if there is none."""
    if name not in STYLES:
        raise UserError(f"style: {name!r} was given; it should be one of: {', '.join(STYLES)}")
    return STYLES[name]


def inches(width: "str | float | None", where: str = "width") -> float | None:
    """A width such as "3.3in", "84 mm", "8.4cm" or "239pt" in inches; UserError if it is none for a figure."""
    if width is None:
        return None
    found = re.fullmatch(r"\s*(\d*\.?\d+)\s*(in|cm|mm|pt)?\s*", str(width))
    value = float(found[1]) * _INCHES[found[2] or "in"] if found else math.nan
    if not _LEAST <= value <= _MOST:
        wanted = f"a width from {_LEAST:g}in to {_MOST:g}in is required, such as 3.3in, 84mm, 8.4cm or 239pt"
        raise UserError(f"{where}: {width!r} was given; {wanted}")
    return value


@dataclass(frozen=True)
class Look:
    """What tells a curve apart: a hue of its method, and among the values of a grid its place in a ramp; dashes and a marker."""

    hue: int
    dash: int
    marker: int
    tone: float = 0.0  # -1: the lightest of its hue, for the least value; 1: the darkest

    @property
    def of_line(self) -> dict[str, Any]:
        """As Matplotlib has it; what has gaps is drawn over what has none, so that a curve is seen below an equal one."""
        end, share = ("white", _LIGHTEST) if self.tone < 0 else ("black", _DARKEST)
        pure, other = (np.array(to_rgb(c)) for c in (COLOURS[self.hue % len(COLOURS)], end))
        color = to_hex(pure + share * abs(self.tone) * (other - pure))
        dash, marker = self.dash % len(_DASHES), _MARKERS[self.marker % len(_MARKERS)]
        return {"color": color, "linestyle": _DASHES[dash], "marker": marker, "zorder": 2 + 0.01 * dash}


def looks(names: Iterable[str], of_job: Sequence[str] = ()) -> dict[str, Look]:
    """The look of each name: a hue for a method, by its place among the labels `of_job`, with dashes of its own, or where it has
    several values of a grid a ramp of the hue and dashes by value. Methods that share a colour have other dashes and markers. What
    was tuned, which a paper's figure leaves out, decides only between runs that are otherwise of one name."""
    runs = {name: re.sub(_TUNED, "", name) for name in names}
    times = Counter(runs.values())
    parts = {name: method_and_values(run if times[run] == 1 else name) for name, run in runs.items()}
    own = dict.fromkeys(method for method, _ in parts.values())
    known = dict.fromkeys(method_and_values(label)[0] for label in of_job)
    methods = [*(known if own.keys() <= known.keys() else own)]
    times = Counter(method for method, _ in parts.values())
    values = sorted(dict.fromkeys(value for method, value in parts.values() if times[method] > 1), key=_numbers)
    found, pure, n = {}, dict[int, int](), len(COLOURS)  # pure: by hue the last dashes in it, first those of the middle of a ramp
    for name, (method, value) in sorted(parts.items(), key=lambda part: times[part[1][0]] == 1):
        hue = methods.index(method)
        if times[method] == 1:
            look = Look(hue, pure.get(hue % n, hue - n) + n, hue)
        else:
            at = values.index(value)
            look = Look(hue, at + hue // n * n, hue if len(methods) > 1 else at, 2 * at / max(len(values) - 1, 1) - 1)
        if not look.tone:
            pure[hue % n] = look.dash
        found[name] = look
    return found


def _numbers(value: str) -> tuple[float, ...]:
    """The numbers in the values of a grid, by which they are in order."""
    return tuple(map(float, re.findall(r"-?\d+\.?\d*(?:e[+-]?\d+)?", value)))
