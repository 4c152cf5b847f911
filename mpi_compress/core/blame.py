"""Errors in a user's own parts: one line with the part, the file and the line, in place of a traceback."""

import linecache
import os
import site
import sysconfig
import traceback
from pathlib import Path
from types import CodeType

SWITCH = "MPI_COMPRESS_TRACEBACK"
_PACKAGE = str(Path(__file__).parents[1])
_INSTALLED = (sysconfig.get_path("stdlib"), *site.getsitepackages(), site.getusersitepackages(), "<")


def text_of(error: BaseException) -> str:
    """What to print of an error: one line if it came from a user's part, else its traceback; that always if `SWITCH` is set."""
    place = None if os.environ.get(SWITCH) else _place(error)
    if place is None:
        return "".join(traceback.format_exception(error)).rstrip()
    code, line = place
    what = " ".join(str(error).split()) or "without a word"
    source = linecache.getline(code.co_filename, line).strip()
    where = f"{code.co_filename}, line {line}, in {code.co_qualname}" + f": {source}" * bool(source)
    return f"{type(error).__name__}: {what} ({where}); {SWITCH}=1 prints the traceback"


def _place(error: BaseException) -> tuple[CodeType, int] | None:
    """The last place in a user's part, which this package has called; None if the error came from elsewhere."""
    found, called = None, False
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if file.startswith(_PACKAGE):
            called = True
        elif called and not file.startswith(_INSTALLED):
            found = frame.f_code, line
    return found
