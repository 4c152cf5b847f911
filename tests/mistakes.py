"""Puts small mistakes into a copy of the package, one at a time, and says which of them the tests notice.

    python tests/mistakes.py [--only TEXT …] [--jobs N]

The mistakes are in `mistakes.toml`; `test_mistakes.py` checks that they go with the source. It is run by hand. First the tests of the
table are played on an unchanged copy, where all of them must pass. `--only` takes the mistakes whose file or words have one of these
texts. The exit status is 1 where fewer than 95 of 100 are seen.
"""

import argparse
import re
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from helpers.copies import LONGEST, PACKAGE, ROOT, copied, kernels_for, on_copies, played, pytest_of

WANTED = 0.95  # share of the mistakes that must be seen


class Mistake(NamedTuple):
    """A slip in one file of the package."""

    what: str  # what is wrong, in a few words
    file: str  # below mpi_compress/
    right: str  # the text as it stands, once in the file
    wrong: str  # the text with the mistake
    tests: list[str]  # files or tests below tests/ that should notice


MISTAKES = tuple(Mistake(**each) for each in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["mistake"])


def invalid(mistakes: tuple[Mistake, ...] = MISTAKES) -> Iterator[str]:
    """What does not go with the source: a text that is not there once, a test that does not exist."""
    for m in mistakes:
        if (times := (PACKAGE / m.file).read_text().count(m.right)) != 1:
            yield f"{m.file}: {m.right!r} is there {times} times"
        for test in m.tests:
            file, _, name = test.partition("::")
            text = (ROOT / "tests" / file).read_text() if (ROOT / "tests" / file).exists() else ""
            if not text or (name and f"def {name.partition('[')[0]}(" not in text):
                yield f"{m.file}, {m.what}: there is no test {test}"


def play(place: Path, cache: Path, tests: list[str]) -> tuple[int, str]:
    """Pytest's exit status for these tests on the copy in `place`, and the end of what it printed."""
    status, said = played(place, pytest_of(tests), LONGEST, NUMBA_CACHE_DIR=str(cache))
    return status, "\n".join(said.splitlines()[-15:])


def nodes(mistakes: list[Mistake]) -> list[str]:
    return list(dict.fromkeys(f"tests/{test}" for m in mistakes for test in m.tests))


def try_out(m: Mistake, place: Path, cache: Path) -> tuple[bool, str]:
    """True if a test notices the mistake, and a line about it."""
    file = place / "mpi_compress" / m.file
    right, begun = file.read_text(), time.monotonic()
    file.write_text(right.replace(m.right, m.wrong))
    try:
        with tempfile.TemporaryDirectory() as other:
            status, said = play(place, kernels_for(m.file, cache, Path(other)), nodes([m]))
    finally:
        file.write_text(right)
    if re.search(r"^ERROR \S+\.py\b(?!::)", said, re.MULTILINE):  # the module cannot be imported: no test was played
        status = 2
    word = {0: "NOT SEEN", 1: "seen"}.get(status, f"pytest ended with {status}:\n{said}\n")
    return status == 1, f"{word:8s} {time.monotonic() - begun:5.1f} s  {m.file}: {m.what}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="mistakes whose file or words have one of these texts")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="so many at a time (default: 1)")
    options = parser.parse_args()
    chosen = [m for m in MISTAKES if not options.only or any(text in f"{m.file}: {m.what}" for text in options.only)]
    if problems := list(invalid(tuple(chosen))):
        print(*problems, sep="\n")
        return 2
    with tempfile.TemporaryDirectory(prefix="mistakes-") as folder:
        cache = Path(folder) / "cache"
        status, said = play(copied(Path(folder) / "copy-0"), cache, nodes(chosen))
        if status:
            print(f"without a mistake the tests do not pass:\n{said}")
            return 2
        print(f"{len(nodes(chosen))} tests or files of tests pass without a mistake", flush=True)

        def next_one(m: Mistake, place: Path) -> bool:
            seen, line = try_out(m, place, cache)
            print(line, flush=True)
            return seen

        seen = sum(on_copies(Path(folder), options.jobs, next_one, chosen))
    print(f"{seen} of {len(chosen)} mistakes were seen")
    return 0 if seen >= WANTED * len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
