"""A number that is not known yet, such as L or d before the data are read: what asks for its value ends with `NotYetKnown`."""

from collections.abc import Callable
from typing import Any, Final, NoReturn, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")


class NotYetKnown(Exception):
    """The answer depends on a number that is not known yet."""


class _Unknown:
    """Stands for such a number. What depends on it shows this by asking, so no number is made up in its place."""

    def _asked(self, *_: Any) -> NoReturn:
        raise NotYetKnown

    __float__ = __int__ = __index__ = __bool__ = __abs__ = __neg__ = __hash__ = _asked
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _asked
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __pow__ = __rpow__ = _asked
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _asked

    def __repr__(self) -> str:
        return "?"


UNKNOWN: Final[Any] = _Unknown()


def if_known(ask: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """What `ask` returns of the arguments, or UNKNOWN where that depends on a number that is not known yet."""
    try:
        return ask(*arguments, **named)
    except NotYetKnown:
        return UNKNOWN
