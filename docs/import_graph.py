"""The package's modules and what each imports, read from their source: for the picture of the house, and for the test of its rules.

Every import counts, also inside functions, under TYPE_CHECKING, and by `import_module("…")`.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "mpi_compress"

FLOORS = {
    "kernels": 0, "core": 1, "messages": 2, "exchange": 3, "results": 3, "problem": 4, "algorithms": 5, "saving": 5, "job": 6,
    "guard": 7, "evidence": 7, "preparing": 8, "figures": 8, "engine": 9, "planning": 10, "cluster": 11,
    "report": 12, "cli": 13,
}  # fmt: skip
"""A room's floor: it imports rooms of lower floors alone."""


@dataclass(frozen=True)
class Module:
    """A module of the package, such as name = "messages.codecs.rice"; the package itself is ""."""

    name: str
    file: Path

    @cached_property
    def text(self) -> str:
        return self.file.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def room(self) -> str:
        """The room that it lies in; "" for the top level."""
        return "" if self.name == "__main__" else self.name.partition(".")[0]

    @property
    def folder(self) -> str:
        return self.name if self.file.name == "__init__.py" else self.name.rpartition(".")[0]

    @cached_property
    def parts(self) -> list[str]:
        """The classes that it registers as parts, which jobs name."""
        return [node.name for node in self.tree.body if isinstance(node, ast.ClassDef) and any(map(_registers, node.decorator_list))]

    def imported(self, package: str) -> Iterator[tuple[str, str]]:
        """Each import from the package: (module without the package's name, name), name = "" where the module itself is imported."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                found = [(alias.name, "") for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                found = [(self._absolute(node, package), alias.name) for alias in node.names]
            else:
                continue
            for module, name in found:
                if module == package or module.startswith(f"{package}."):
                    yield module[len(package) + 1 :], name
        yield from ((module, "") for module in self.named(package))

    def named(self, package: str) -> Iterator[str]:
        """The modules that it imports while the program runs, by `import_module("mpi_compress.…")`."""
        for node in ast.walk(self.tree):
            match node:
                case ast.Call(func=ast.Name(id="import_module") | ast.Attribute(attr="import_module"), args=[ast.Constant(str(name))]):
                    if name.startswith(f"{package}."):
                        yield name[len(package) + 1 :]

    def _absolute(self, node: ast.ImportFrom, package: str) -> str:
        if node.level == 0:
            return node.module or ""
        here = [package, *filter(None, self.folder.split("."))]
        return ".".join([*here[: len(here) - node.level + 1], *([node.module] if node.module else [])])


def _registers(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Attribute) and decorator.func.attr == "register"


def modules(package: Path = PACKAGE) -> dict[str, Module]:
    """All modules by name."""
    found = {}
    for file in sorted(package.rglob("*.py")):
        parts = file.relative_to(package).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = Module(name, file)
    return found


def edges(found: Mapping[str, Module], package: str = "mpi_compress") -> dict[str, set[str]]:
    """A module's name → the names of the modules that it imports; `from folder import module` imports the module."""
    graph: dict[str, set[str]] = {}
    for name, module in found.items():
        wanted = [f"{target}.{what}".strip(".") if what else target for target, what in module.imported(package)]
        targets = (each if each in found else each.rpartition(".")[0] for each in wanted)
        graph[name] = {target for target in targets if target in found and target != name}
    return graph


def rooms(found: Mapping[str, Module], package: str = "mpi_compress") -> dict[str, set[str]]:
    """A room → the rooms that its modules import; the top level, which exports lazily, is left out."""
    graph: dict[str, set[str]] = {}
    for name, targets in edges(found, package).items():
        graph.setdefault(found[name].room, set()).update(found[target].room for target in targets)
    return {room: targets - {room, ""} for room, targets in graph.items() if room}


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Sets of modules that import one another in circles (Tarjan's strongly connected components of more than one)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for target in sorted(graph[name]):
            if target not in index:
                visit(target)
                low[name] = min(low[name], low[target])
            elif target in stack:
                low[name] = min(low[name], index[target])
        if low[name] == index[name]:
            at = stack.index(name)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for name in graph:
        if name not in index:
            visit(name)
    return found
