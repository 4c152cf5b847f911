"""Names that are chosen by themselves, or by patterns with * and ?."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

Choice = str | Sequence[str] | None
"""A name or a pattern, or several; None: all."""


def each_of(choice: Choice) -> Sequence[str]:
    """The names and patterns of a choice."""
    return ["*"] if choice is None else [choice] if isinstance(choice, str) else choice


def is_chosen(names: str | Sequence[str], choice: Choice) -> bool:
    """True if a name, or one of several, is one of these, or matches one as a pattern."""
    return any(name == pattern or fnmatchcase(name, pattern) for name in each_of(names) for pattern in each_of(choice))
