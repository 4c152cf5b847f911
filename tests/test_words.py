"""The words of the texts that users read: the field's noun stands there, not a word of ours."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BETTER = {  # what is refused: what to write
    r"(re)?play(s|ed|ing)?": "run, rerun, execute",
    r"anew": "again",
    r"the house|tree of folds|fast ways?": "the architecture, a tree of sums, a fast path",
    r"the data (itself|themselves)": "sending the data",
    r"gap of (f|the loss)|gap f|gap to f|(least|last) gap": "suboptimality",
    r"theorem'?s steps?": "theoretical step size",
    r"dealt": "assigned",
    r"(is|are) wanted(?=[,;:)\"']|$| such)": "is required",
    r"stand-ins?|substitute (data )?sets?": "other data",
    r"(rows of data|training rows|minibatch of rows|rows a worker)": "samples",
    r"not never|is at this run|was damaged|who wants to": "plainer sentences",
}
REFUSED = re.compile("|".join(rf"\b({pattern})" for pattern in BETTER), re.IGNORECASE)
IN_CODE = re.compile(r"^```.*?^```|`[^`\n]*`|\]\([^)\n]*\)|^ {4}.*?$|[“\"][^”\"\n]*[”\"]", re.MULTILINE | re.DOTALL)
KEPT = ("a stand-in for", "play.json", "playing.play", "is its stand-in")  # names in results and files
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def texts(file: Path) -> Iterator[tuple[int, str]]:
    """Docstrings, and other strings of several words, without what stands in code or braces."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.search(r"\S \S", node.value):
            yield node.lineno, re.sub(r"`[^`]*`", "", node.value)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_has_the_words_of_the_field(page):
    assert [m[0] for m in REFUSED.finditer(IN_CODE.sub("", page.read_text(encoding="utf-8")))] == []


@pytest.mark.parametrize("folder", sorted(f for f in (ROOT / "mpi_compress").iterdir() if (f / "__init__.py").exists()), ids=lambda f: f.name)
def test_the_package_says_it_in_the_words_of_the_field(folder):
    found = [(file, line, text) for file in sorted(folder.rglob("*.py")) for line, text in texts(file)]
    assert [f"{file.relative_to(ROOT)}:{line}: {m[0]}" for file, line, text in found for m in REFUSED.finditer(text) if not any(kept in text for kept in KEPT)] == []
