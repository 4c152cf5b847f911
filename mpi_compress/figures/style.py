"""How figures look: their sizes and fonts on a screen and in a paper, and what tells methods apart."""

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib import rc_params_from_file

from mpi_compress.core.errors import UserError
from mpi_compress.evidence.lines import Namer, name_in_paper, name_of, stem

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7A4FB5", "#8C5A2B", "#9B1B30")
"""Okabe and Ito's colours, which colour-blind readers can distinguish; violet in place of their yellow, then brown and dark red."""
MOST = 8  # curves of a panel that have colours
_THIN: dict[str, Any] = {"color": "0.6", "linewidth": 0.8, "zorder": 1.8}  # further ones
_DASHES = ("-", "--", "-.", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (8, 2)), (0, (8, 1, 2, 1)), (0, (5, 1, 1, 1, 1, 1)))  # dots: starts
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

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


def look_of(number: int) -> dict[str, Any]:
    """Colour, dashes and marker of a method by its number; methods that share a colour have other dashes."""
    turn = number // len(COLOURS)
    dashes = _DASHES[(number + 3 * turn) % len(_DASHES)]
    return {"color": COLOURS[number % len(COLOURS)], "linestyle": dashes, "marker": _MARKERS[(number + turn) % len(_MARKERS)]}


def looks(names: Sequence[str], dashed: bool = True, grey: Collection[str] = ()) -> dict[str, dict[str, Any]]:
    """The look of each name: a colour for a method and dashes for its parameters, where several methods have several of them. Where
    dashes stand for something else, not `dashed`, each name has a colour of its own. A `grey` one keeps dashes and marker."""
    return {name: look | (_THIN if name in grey else {}) for name, look in _coloured(names, dashed).items()}


def _coloured(names: Sequence[str], dashed: bool) -> dict[str, dict[str, Any]]:
    parts = {name: (method := stem(name), name[len(method) :]) for name in names}
    methods, values = ([*dict.fromkeys(part[i] for part in parts.values())] for i in range(2))
    if not (dashed and 1 < len(methods) < len(names) and len(methods) <= len(COLOURS) and len(values) <= len(_DASHES)):
        return {name: look_of(number) for number, name in enumerate(names)}
    return {
        name: look_of(methods.index(own)) | {"linestyle": _DASHES[values.index(value)]} for name, (own, value) in parts.items()
    }
