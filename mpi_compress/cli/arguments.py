"""What each command takes, as `commands.toml` says.

Nothing heavy is imported here, so that `--help`, `--version` and a wrong command wait for no other package.
"""

import math
import tomllib
from argparse import SUPPRESS, Action, ArgumentError, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mpi_compress.core.shipped import named

Argument = tuple[tuple[str, ...], Mapping[str, Any]]
"""The names and the settings of `ArgumentParser.add_argument`."""


@dataclass(frozen=True)
class Command:
    """A command's line in `--help`, its arguments, and the commands that it has itself."""

    help: str
    arguments: Sequence[Argument] = ()
    commands: Mapping[str, "Command"] = field(default_factory=dict)


class _Once(Action):
    """An option that may be given once."""

    def __call__(self, parser: ArgumentParser, namespace: Namespace, values: Any, option_string: str | None = None) -> None:
        if (before := getattr(namespace, self.dest)) is not self.default:
            raise ArgumentError(self, f"{before} and {values} were given; one file is written")
        setattr(namespace, self.dest, values)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text} was given; it should be a whole number from 1 on")
    return int(text)


def _ends(text: str) -> list[float]:
    try:
        low, high = map(float, text.split(":"))
        if not -math.inf < low < high < math.inf:
            raise ValueError
    except ValueError:
        raise ArgumentTypeError(f"{text} was given; an axis's ends are required, the lower one first, such as 1e-4:1") from None
    return [low, high]


def _page(text: str) -> Path:
    if (page := Path(text)).suffix not in (".html", ".htm"):
        raise ArgumentTypeError(f"{text} was given; a report is a page, .html, which browsers print to PDF")
    return page


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


TYPES: Mapping[str, Callable[[str], Any]] = {
    "shipped": named, "count": _positive, "int": int, "ends": _ends, "page": _page, "path": Path, "names": _names,
}  # fmt: skip
_TABLE = tomllib.loads(Path(__file__).with_name("commands.toml").read_text("utf-8"))


def _argument(name: str | list[str], flag: bool = False, hidden: bool = False, **settings: Any) -> Argument:
    settings |= {"action": "store_true"} if flag else {}
    settings |= {"help": SUPPRESS} if hidden else {}
    settings = {"action": _Once, **settings} if name == "-o" else settings
    settings |= {"type": TYPES[settings["type"]]} if "type" in settings else {}
    return (name,) if isinstance(name, str) else tuple(name), settings


def _arguments(listed: Iterable[Any]) -> Iterator[Argument]:
    for each in listed:
        yield from _arguments(_TABLE["shared"][each]) if isinstance(each, str) else (_argument(**each),)


def _commands(tables: Mapping[str, Any]) -> dict[str, Command]:
    return {
        name: Command(each["help"], [*_arguments(each.get("arguments", ()))], _commands(each.get("commands", {})))
        for name, each in tables.items()
    }


COMMANDS = _commands(_TABLE["commands"])
"""Commands by name. A command is `act(options)` of its module in `cli/`; one of its own commands is a function such as `act_ls`."""

GROUPS: Mapping[str, Sequence[str]] = _TABLE["groups"]
"""The commands as `--help` has them."""
