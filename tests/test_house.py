"""The rules of docs/contributing.md, over the package's imports and source: which room may import which, and how large things may be."""

import ast
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "docs"))
from import_graph import FLOORS, PACKAGE, Module, circles, edges, modules

Found = Mapping[str, Module]
Rule = Callable[[Found], Iterator[str]]

VERBS = {"estimators": {"workers_send"}, "servers": {"move"}, "downlinks": {"start", "all_hear"}, "papers": set()}
STATES = {"Master", "Memory", "Node", "Worker"}  # what a method remembers; each method's file may define its own
CLASSES_BELOW_A_CONTRACT = 2
LINES_OF_A_FUNCTION, METHODS_OF_A_CLASS, PARAMETERS_OF_A_CONSTRUCTOR, IGNORED_TYPES = 40, 20, 7, 20


def top_level_holds_rooms_alone(found: Found) -> Iterator[str]:
    known = {"__init__.py", "__init__.pyi", "__main__.py", "py.typed", "__pycache__", *FLOORS}
    for path in sorted(found[""].file.parent.iterdir()):
        if path.name not in known:
            yield f"{path.name}: is no room"


def rooms_import_lower_floors_alone(found: Found) -> Iterator[str]:
    for name, targets in edges(found).items():
        room = found[name].room
        for target in sorted(targets):
            other = found[target].room
            if room == "" or other == room:
                continue
            if other == "":
                if room != "cli":
                    yield f"{name} imports the package's top level"
            elif FLOORS[other] >= FLOORS[room]:
                yield f"{name} (floor {FLOORS[room]}) imports {target} (floor {FLOORS[other]})"


def no_circle_within_a_room(found: Found) -> Iterator[str]:
    graph = edges(found)
    inside = {name: {t for t in targets if found[t].room == found[name].room} for name, targets in graph.items() if name}
    for circle in circles(inside):
        yield " ↔ ".join(circle)


def no_concrete_part_is_named_outside_its_folder(found: Found) -> Iterator[str]:
    folder_of = {part: module.folder for module in found.values() for part in module.parts}
    for name, module in found.items():
        for target, what in module.imported("mpi_compress"):
            of_module = found.get(f"{target}.{what}".strip("."), found.get(target))
            folder = folder_of.get(what) or (of_module.folder if of_module is not None and of_module.parts else None)
            if folder is None or f"{module.folder}.".startswith(f"{folder}.") or name == "":
                continue
            if not (module.room == "algorithms" and folder.startswith("algorithms")):
                yield f"{name} imports {what or target} of {target}"


def methods_define_the_verbs_of_their_folder(found: Found) -> Iterator[str]:
    """A part of a method has its contract's verbs, and stands at most two classes below the contract."""
    classes = {node.name: (name, node) for name, node in _classes_of_methods(found)}
    for name, node in classes.values():
        folder = found[name].folder.rpartition(".")[2]
        above = [node.name, *_classes_above(node, classes)]
        if node.name not in found[name].parts or folder not in VERBS:
            continue
        defined = {each.name for cls in above for each in classes[cls][1].body if isinstance(each, ast.FunctionDef)}
        if missing := VERBS[folder] - defined:
            yield f"{name}.{node.name}: no {', '.join(sorted(missing))}"
        if _depth(node, classes) > CLASSES_BELOW_A_CONTRACT:
            yield f"{name}.{node.name}: {' < '.join(above)}"


def _classes_of_methods(found: Found) -> Iterator[tuple[str, ast.ClassDef]]:
    """The classes of the algorithms' folders: those of its own modules are contracts."""
    for name, module in found.items():
        if module.folder.startswith("algorithms."):
            yield from ((name, node) for node in module.tree.body if isinstance(node, ast.ClassDef))


def _bases(node: ast.ClassDef) -> list[str]:
    return [base.id if isinstance(base, ast.Name) else base.attr for base in node.bases if isinstance(base, ast.Name | ast.Attribute)]


def _classes_above(node: ast.ClassDef, classes: Mapping[str, tuple[str, ast.ClassDef]]) -> list[str]:
    known = [base for base in _bases(node) if base in classes]
    return [*known, *(above for base in known for above in _classes_above(classes[base][1], classes))]


def _depth(node: ast.ClassDef, classes: Mapping[str, tuple[str, ast.ClassDef]]) -> int:
    """How many classes below a contract it stands."""
    return 1 + max((_depth(classes[base][1], classes) for base in _bases(node) if base in classes), default=0)


def functions_fit_one_screen(found: Found) -> Iterator[str]:
    for name, module in found.items():
        for node in ast.walk(module.tree) if module.room != "kernels" else ():
            if isinstance(node, ast.FunctionDef) and (lines := (node.end_lineno or 0) - node.lineno + 1) > LINES_OF_A_FUNCTION:
                yield f"{name}.{node.name}: {lines} lines"


def _classes(module: Module) -> Iterator[tuple[str, list[ast.FunctionDef]]]:
    """Each class with its methods."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ClassDef):
            yield node.name, [each for each in node.body if isinstance(each, ast.FunctionDef)]


def classes_have_few_methods(found: Found) -> Iterator[str]:
    for name, module in found.items():
        for cls, methods in _classes(module):
            if len(methods) > METHODS_OF_A_CLASS:
                yield f"{name}.{cls}: {len(methods)} methods"


def constructors_have_few_parameters(found: Found) -> Iterator[str]:
    """Those that are written out: a dataclass is a table of named fields."""
    for name, module in found.items():
        for cls, methods in _classes(module):
            for args in (method.args for method in methods if method.name == "__init__"):
                count = len(args.posonlyargs + args.args + args.kwonlyargs) - 1
                if count > PARAMETERS_OF_A_CONSTRUCTOR:
                    yield f"{name}.{cls}: {count} parameters"


def a_public_class_name_means_one_thing(found: Found) -> Iterator[str]:
    places: dict[str, list[str]] = {}
    for name, module in found.items():
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and node.name not in STATES:
                places.setdefault(node.name, []).append(name)
    yield from (f"{cls}: {', '.join(names)}" for cls, names in places.items() if len(names) > 1)


def few_types_are_ignored(found: Found) -> Iterator[str]:
    counts = {name: module.text.count("type: ignore") for name, module in found.items()}
    if sum(counts.values()) > IGNORED_TYPES:
        yield f"{sum(counts.values())} in all, {IGNORED_TYPES} may be"
        yield from (f"{name}: {count}" for name, count in counts.items() if count)


RULES: list[Rule] = [
    top_level_holds_rooms_alone,
    rooms_import_lower_floors_alone,
    no_circle_within_a_room,
    no_concrete_part_is_named_outside_its_folder,
    methods_define_the_verbs_of_their_folder,
    functions_fit_one_screen,
    classes_have_few_methods,
    constructors_have_few_parameters,
    a_public_class_name_means_one_thing,
    few_types_are_ignored,
]


@cache
def package() -> Found:
    """The package's modules, each of them parsed once."""
    return modules(PACKAGE)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_house_keeps_its_rule(rule):
    offenders = list(rule(package()))
    assert not offenders, "\n".join([f"{len(offenders)} offenders:", *offenders])


WRONG = {
    rooms_import_lower_floors_alone: {
        "messages/link.py": 'def f():\n    import_module("mpi_compress.problem.objective")\n',
        "problem/objective.py": "from mpi_compress.problem.losses import Loss\n",
        "problem/losses/__init__.py": "",
        "problem/__init__.py": "",
    },
    no_circle_within_a_room: {
        "job/claims.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from mpi_compress.job.loading import Job\n",
        "job/loading.py": "from . import claims\n",
        "job/__init__.py": "",
    },
    no_concrete_part_is_named_outside_its_folder: {
        "algorithms/__init__.py": "",
        "algorithms/gd.py": '@algorithms.register("gd")\nclass GD: ...\n',
        "algorithms/sgd.py": "from mpi_compress.algorithms.gd import GD\n",
        "engine/rounds.py": "from mpi_compress.algorithms.gd import GD\n",
    },
    methods_define_the_verbs_of_their_folder: {
        "algorithms/estimators/gd.py": (
            '@algorithms.register("gd")\nclass GD(Estimator):\n    def workers_send(self): ...\n'
            'class SGD(GD): ...\n@algorithms.register("svrg")\nclass SVRG(SGD): ...\n'
        ),
        "algorithms/servers/step.py": '@servers.register("step")\nclass Step(Server):\n    def move(self): ...\n',
    },
    functions_fit_one_screen: {"core/long.py": "def f():\n" + "    pass\n" * 40, "kernels/long.py": "def f():\n" + "    pass\n" * 40},
    a_public_class_name_means_one_thing: {
        "job/tables.py": "class Ending: ...\nclass Node: ...\n", "evidence/endings.py": "class Ending: ...\nclass Node: ...\n",
    },
    top_level_holds_rooms_alone: {"__init__.py": "", "faces.py": ""},
}


@pytest.mark.parametrize("rule", WRONG, ids=lambda rule: rule.__name__)
def test_a_broken_rule_is_seen_once(rule, tmp_path):
    for name, text in WRONG[rule].items():
        file = tmp_path / "mpi_compress" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert len(list(rule(modules(tmp_path / "mpi_compress")))) == 1
