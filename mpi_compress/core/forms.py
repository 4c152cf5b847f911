"""Verbs in two forms: of one vector, which users write, and of rows, which ours are. A class has one by the other."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any


def complete(cls: Any, base: Any, forms: Mapping[str, tuple[str, Callable[..., Any]]]) -> None:
    """Give a class that defines one form of a verb the other one.

    Args:
        base: the contract, whose forms of rows are loops over one vector.
        forms: the verb of one vector; the verb of rows, and what is the first one by it. It is given the class's own verb of rows:
            a derived class may have a verb of one vector that calls this one.
    """
    for one, (of_rows, by_rows) in forms.items():
        if of_rows in vars(cls) and one not in vars(cls):
            setattr(cls, one, _by(by_rows, vars(cls)[of_rows]))
        elif one in vars(cls) and of_rows not in vars(cls):
            setattr(cls, of_rows, vars(base)[of_rows])


def _by(by_rows: Callable[..., Any], rows: Callable[..., Any]) -> Callable[..., Any]:
    """The verb of one vector by a class's own verb of rows."""

    @wraps(by_rows)
    def one(part: Any, *arguments: Any, **named: Any) -> Any:
        return by_rows(part, rows, *arguments, **named)

    return one
