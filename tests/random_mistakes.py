"""Puts small mistakes that are drawn at random into a copy of the package, one at a time, and says which of them the tests notice.

    python tests/random_mistakes.py [--count N] [--seed N] [--only ROOM …] [--tests FILE|FOLDER …] [--jobs N]

It is run by hand, and needs `coverage`. A mistake is one of a few operators (`helpers/slips.py`) at any place of the package. It is
played against the tests that enter its line, in their own process or in one that they start, the quickest first, until one fails;
which tests those are is measured once, on a copy without a mistake, and kept beside the tree: until the package changes, or, of one
file of tests, until that file does. Kernels are compiled, so no tool sees which lines of them are entered: theirs are the tests of
KERNELS. Tests of recorded bytes are left out: what they alone notice has no oracle. The exit status is 1 where fewer than 95 of 100
mistakes are noticed.
"""

import argparse
import ast
import functools
import hashlib
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from helpers.copies import PACKAGE, ROOT, copied, kernels_for, on_copies, played, pytest_of
from helpers.slips import Slip, slips_of

WANTED = 0.95  # share of the mistakes that must be noticed
KEPT = ROOT / ".random-mistakes.json"  # which tests enter which lines
KERNELS = ("tests/kernels", "tests/messages", "tests/problem", "tests/oracles")
LEFT_OUT = (
    "tests/test_run_fixtures.py", "tests/test_message_fixtures.py", "tests/test_run_id_fixtures.py",  # recorded bytes
    "tests/test_mistakes.py", "tests/test_house.py", "tests/test_wheel.py", "tests/test_notebook.py",  # these look at the source itself
)  # fmt: skip
LONGEST = 4 * 3600  # seconds to measure all tests
PATIENCE = 60  # seconds that a test may take besides five times its usual ones, such as to compile kernels
SECONDS = 40.0  # of the tests of one mistake, as they took without it; further ones are not played


class Drawn(NamedTuple):
    """A mistake, and its file below mpi_compress/."""

    file: str
    slip: Slip

    @property
    def what(self) -> str:
        right, wrong = (" ".join(text.split()) for text in (self.slip.right, self.slip.wrong))
        return f"{self.file}:{self.slip.line}: {self.slip.operator}: {right[:60]} → {wrong[:60]}"


@dataclass
class Entered:
    """Which tests enter a line, and how long each takes; a test's name without `::` stands for all tests of its file."""

    lines: dict[str, dict[str, list[str]]] = field(default_factory=dict)  # file → line → tests
    seconds: dict[str, float] = field(default_factory=dict)

    def tests_of(self, m: Drawn) -> list[str]:
        """The tests that could notice a mistake, the quickest first."""
        room = m.file.partition("/")[0]
        if room == "kernels":
            found = {test for test in self.seconds if test.startswith(KERNELS)}
        else:
            own = self.lines.get(m.file, {})
            lines = set(range(m.slip.line, m.slip.line + m.slip.right.count("\n") + 1))
            imported = not lines & lines_of_functions(m.file)  # the line is run as its module is imported
            lines |= lines_of_functions(m.file) if imported else set()
            found = {test for line in lines for test in own.get(str(line), ())}
            found |= {test for test in self.seconds if imported and test.startswith("tests/oracles/")}
            found = found or {test for test in self.seconds if test.startswith(f"tests/{room}/")}
        files = {test for test in found if "::" not in test}
        single = {test for test in self.seconds if test in found or test.partition("::")[0] in files}
        chosen, total = [], 0.0
        for test in sorted(single, key=lambda test: (self.seconds[test], test)):
            total += self.seconds[test]
            if total > SECONDS and chosen:
                break
            chosen.append(test)
        return chosen


@functools.cache
def lines_of_functions(file: str) -> set[int]:
    """The lines of a file below mpi_compress/ that are in the body of a function."""
    functions = (node for node in ast.walk(ast.parse((PACKAGE / file).read_text())) if isinstance(node, ast.FunctionDef))
    return {line for node in functions for line in range(node.body[0].lineno, node.end_lineno + 1)}


def drawn(count: int, seed: int, rooms: list[str] | None) -> list[Drawn]:
    """So many mistakes, all operators as likely as each other, and of one operator all places of the rooms."""
    left: dict[str, list[Drawn]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        file = path.relative_to(PACKAGE).as_posix()
        for slip in slips_of(path.read_text()) if not rooms or file.partition("/")[0] in rooms else ():
            left.setdefault(slip.operator, []).append(Drawn(file, slip))
    rng, found = random.Random(seed), list[Drawn]()
    while left and len(found) < count:
        operator = rng.choice(sorted(left))
        found.append(left[operator].pop(rng.randrange(len(left[operator]))))
        left = {name: each for name, each in left.items() if each}
    return found


def digest(paths: Iterable[Path]) -> str:
    """A digest of files."""
    found = hashlib.sha256()
    for path in sorted(paths):
        found.update(path.read_bytes())
    return found.hexdigest()


def measured(folder: Path, cache: Path, tests: list[str], jobs: int) -> Entered:
    """Which of these tests enter which lines: from what is kept, and else by playing them on copies, a few files at a time."""
    common = digest([*PACKAGE.rglob("*.py"), *(ROOT / "tests" / "helpers").glob("*.py")])
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    kept = kept["files"] if kept.get("common") == common else {}
    files = {file: digest([ROOT / file]) for file in _files(tests) if file not in LEFT_OUT}
    left = [file for file in files if kept.get(file, {}).get("digest") != files[file]]
    if left:
        print(f"which tests of {len(left)} files enter which lines is measured; this takes longer than the tests do", flush=True)

    def measure(share: list[str], place: Path) -> None:
        seconds, settings = place / "seconds.json", place / "by-line.ini"
        for old in place.glob("lines*"):
            old.unlink()
        own = f"[run]\nparallel = true\ndata_file = {place}/lines\ninclude = {place}/mpi_compress/*\n"
        settings.write_text(f"{own}context = ${{BY_LINE_TEST-}}\ndisable_warnings = no-data-collected\n")
        line = [part for part in pytest_of(share, "-p", "helpers.by_line") if part != "-x"]
        notes = {"BY_LINE_SECONDS": str(seconds), "BY_LINE_SETTINGS": str(settings)}
        command = ["coverage", "run", f"--rcfile={settings}", "-m", *line]
        status, said = played(place, command, LONGEST, NUMBA_CACHE_DIR=str(cache), **notes)
        if status not in (0, 1, 5):  # 5: all of them are slow
            raise SystemExit(f"the tests cannot be played, pytest ends with {status}:\n{said[-2000:]}")
        failed = set(re.findall(r"^(?:FAILED|ERROR) (\S+::.*?)(?: - .*)?$", said, re.MULTILINE))
        if failed:
            print("without a mistake, too, these tests fail, and are left out:", *sorted(failed), sep="\n  ", flush=True)
        found = _by_file(place, json.loads(seconds.read_text()), failed)
        if status == 0 and not any(each["lines"] for each in found.values()):
            raise SystemExit(f"no line is entered by the tests of {share[0]} and those after it: `coverage` measured nothing")
        kept.update({file: {"digest": files[file], **found.get(file, {"lines": {}, "seconds": {}})} for file in share})
        KEPT.write_text(json.dumps({"common": common, "files": kept}))

    list(on_copies(folder, jobs, measure, [left[i : i + 6] for i in range(0, len(left), 6)]))
    found = Entered()
    for file in files:
        found.seconds |= kept[file]["seconds"]
        for source, lines in kept[file]["lines"].items():
            for line, names in lines.items():
                found.lines.setdefault(source, {}).setdefault(line, []).extend(names)
    return found


def _files(tests: list[str]) -> list[str]:
    places = [ROOT / test for test in tests]
    if absent := [place for place in places if not place.exists()]:
        raise SystemExit(f"{absent[0]}: there is no such place")
    found = [file for place in places for file in (sorted(place.rglob("test_*.py")) if place.is_dir() else [place])]
    return [file.relative_to(ROOT).as_posix() for file in found]


def _by_file(place: Path, seconds: dict[str, float], failed: set[str]) -> dict[str, dict[str, Any]]:
    """What one process of pytest measured, and those that its tests started, for each file of tests."""
    import coverage

    found: dict[str, dict[str, Any]] = {}

    def of(test: str) -> dict[str, Any]:
        return found.setdefault(test.partition("::")[0], {"lines": {}, "seconds": {}})

    for test in seconds.keys() - failed:
        of(test)["seconds"][test] = round(seconds[test], 3)
    lines: dict[tuple[str, int], set[str]] = {}
    for data in place.glob("lines*"):
        entered: Any = coverage.CoverageData(basename=str(data))
        try:
            entered.read()
        except coverage.exceptions.DataError:  # its process was killed
            continue
        for path in entered.measured_files():
            source = Path(path).relative_to(place / "mpi_compress").as_posix()
            for line, tests in entered.contexts_by_lineno(path).items():
                lines.setdefault((source, line), set()).update({*tests} - failed - {""})
    for (source, line), names in lines.items():
        for test in sorted(names):
            of(test)["lines"].setdefault(source, {}).setdefault(str(line), []).append(test)
    return found


class Tried(NamedTuple):
    """What became of a mistake."""

    word: str  # "noticed", "ALIVE", or "NOT ENTERED" by any test
    line: str


def try_out(m: Drawn, place: Path, cache: Path, entered: Entered) -> Tried:
    """Play the tests that could notice a mistake."""
    tests, begun = entered.tests_of(m), time.monotonic()
    if not tests:
        return Tried("NOT ENTERED", f"NOT ENTERED          {m.what}")
    file = place / "mpi_compress" / m.file
    right = file.read_text()
    file.write_text(m.slip.put_into(right))
    try:
        with tempfile.TemporaryDirectory() as other:
            chosen, limits = Path(other) / "tests", Path(other) / "limits.json"
            chosen.write_text("\n".join(tests))
            limits.write_text(json.dumps({test: PATIENCE + 5 * entered.seconds[test] for test in tests}))
            line = pytest_of([f"@{chosen}"], "-p", "helpers.by_line")
            own = kernels_for(m.file, cache, Path(other))
            notes = {"BY_LINE_ORDER": str(chosen), "BY_LINE_LIMITS": str(limits)}
            longest = PATIENCE + 5 * sum(entered.seconds[test] for test in tests)
            status, said = played(place, line, longest, NUMBA_CACHE_DIR=str(own), **notes)
    finally:
        file.write_text(right)
    by = re.search(r"^(?:FAILED|ERROR) tests/(\S+)", said, re.MULTILINE)
    word = "ALIVE" if status == 0 else "noticed"
    ended = "" if status == 0 else f": pytest ended with {status}, {(said.splitlines() or ['no word'])[-1][:80]}"
    who = f" by {by[1]}" if by else ended
    return Tried(word, f"{word:8s}{time.monotonic() - begun:6.1f} s  {m.what}  ({len(tests)} tests{who})")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200, metavar="N", help="how many mistakes (default: 200)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="other mistakes (default: 0)")
    parser.add_argument("--only", nargs="+", metavar="ROOM", help="folders of mpi_compress/")
    parser.add_argument("--tests", nargs="+", default=["tests"], metavar="PLACE", help="files or folders of tests (default: all)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="so many at a time (default: 1)")
    options = parser.parse_args()
    mistakes = drawn(options.count, options.seed, options.only)
    with tempfile.TemporaryDirectory(prefix="random-mistakes-") as name:
        folder, cache = Path(name), Path(name) / "cache"
        for i in range(options.jobs):
            copied(folder / f"copy-{i}")
        entered = measured(folder, cache, options.tests, options.jobs)

        def next_one(m: Drawn, place: Path) -> Tried:
            tried = try_out(m, place, cache, entered)
            print(tried.line, flush=True)
            return tried

        done = list(on_copies(folder, options.jobs, next_one, mistakes))
    return summed_up(mistakes, done)


def summed_up(mistakes: list[Drawn], done: list[Tried]) -> int:
    """Print what was noticed, room by room, and what was not; the exit status."""
    rooms = Counter(m.file.partition("/")[0] for m in mistakes)
    seen = Counter(m.file.partition("/")[0] for m, tried in zip(mistakes, done, strict=True) if tried.word == "noticed")
    print("\nnot noticed:", *sorted(tried.line for tried in done if tried.word != "noticed"), sep="\n")
    print("\nnoticed:", *(f"{room:12s} {seen[room]} of {count}" for room, count in sorted(rooms.items())), sep="\n")
    print(f"{'all':12s} {seen.total()} of {len(done)}")
    return 0 if seen.total() >= WANTED * len(done) else 1


if __name__ == "__main__":
    sys.exit(main())
