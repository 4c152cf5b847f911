"""The pages of docs/ do what they say: their files are written, their commands run, what these print is compared."""

import ast
import csv
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import fields, is_dataclass
from glob import glob
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from helpers.running import BIN, PATIENT

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "docs"))
from bit_audit import COUNTED, JOBS
from import_graph import FLOORS

import mpi_compress as mc
from mpi_compress.cli.main import main
from mpi_compress.job import tables
from mpi_compress.job.loading import load_job
from mpi_compress.job.tables import Stop
from mpi_compress.job.tuning import TuneTable
from mpi_compress.problem.datasets.table import DataTable

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# ([\w./-]+\.(?:toml|py))\n")
RUN = ["tutorial.md", "own-data.md", "own-algorithm.md", "own-loss.md", "own-compressor.md", "deep.md", "bits.md", "from-python.md", "results.md"]
LONG = ["fair-comparison.md"]  # a minute


def same(wanted: str, got: str) -> bool:
    """Whether a printed text is the page's, whose `...` stand for anything, lines included."""
    return doctest.OutputChecker().check_output(wanted, got, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)


def commands(block: str) -> Iterator[tuple[str, str, int]]:
    """A console's lines: what is typed, what it prints, and its exit status, where it is not 0 a last line [status]."""
    for typed, printed in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
        status = re.search(r"^\[(\d+)\]\n\Z", printed, re.MULTILINE)
        yield typed, printed[: status.start()] if status else printed, int(status[1]) if status else 0


def played(typed: str, by_shell: bool) -> tuple[int, str]:
    """The exit status of what is typed, and what it prints; `mpi-compress` in this process, which saves its start, unless `by_shell`."""
    name, *words = shlex.split(typed)
    if by_shell or name != "mpi-compress":
        environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
        both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        done = subprocess.run(typed, shell=True, text=True, env=environment, timeout=PATIENT, **both)
        return done.returncode, done.stdout
    assert not set(typed) & set("|<>;&$`~"), "only a shell understands this"
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(printed):
        try:
            status = main([file for word in words for file in sorted(glob(word)) or [word]])
        except SystemExit as end:  # of a wrong option
            status = int(end.code or 0)
    return status, printed.getvalue()


@pytest.mark.usefixtures("registered_for_one_test_only")
@pytest.mark.parametrize("page", [*RUN, *(pytest.param(page, marks=pytest.mark.slow) for page in LONG)])
def test_a_page_works_as_it_stands(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for language, block in FENCED.findall((DOCS / page).read_text()):
        file = FILE.match(block)
        if file:
            (tmp_path / file[1]).write_text(block)
        elif language == "python":
            exec(compile(block, page, "exec"), names)
        elif language == "console":
            for typed, wanted, status in commands(block):
                ended, printed = played(typed, by_shell=page == "tutorial.md")
                assert ended == status, f"$ {typed}\n{printed}"
                assert "so results depend on the layout" not in printed, f"$ {typed}\n{printed}"
                assert same(wanted, printed), f"$ {typed}\n{printed}\nis not as the page says:\n{wanted}"


SMALL = {"data": {"generator": "gspar", "samples": 40, "dim": 8}, "workers": {"count": 2}, "stop": {"rounds": 2}}


@pytest.mark.usefixtures("registered_for_one_test_only")
@pytest.mark.parametrize("page", [ROOT / "README.md", *(DOCS / name for name in ("index.md", "cluster.md", "contributing.md"))], ids=str)
def test_pieces_of_code_and_of_jobs_on_other_pages_work(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    link = "affine = { c0 = 1, c1 = 1 }\npacket = { c0 = 1, c1 = 1, pmax = 8 }\npoints = { bits = [8], seconds = [1] }\n"
    (tmp_path / "link.toml").write_text(link)
    for language, block in FENCED.findall(page.read_text()):
        if language == "python":
            exec(compile(block, page.name, "exec"), {"mc": mc, "runs": mc.run({**SMALL, "algorithm": {"name": "gd"}})})
        elif language == "toml" and "[data]" not in block:
            load_job({"algorithm": {"name": "gd"}, **SMALL, **tomllib.loads(block)})


def test_every_page_with_code_is_played():
    having = {page.name for page in DOCS.glob("*.md") if re.search("^```(python|console)", page.read_text(), re.MULTILINE)}
    assert having == {*RUN, *LONG}


@pytest.mark.slow
def test_the_pages_are_built_without_a_warning(tmp_path):
    pytest.importorskip("sphinx", reason="the pages are built where the extra `docs` is installed")
    line = [
        sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-d", tmp_path / "trees", DOCS, tmp_path / "html",
    ]  # fmt: skip
    done = subprocess.run([str(a) for a in line], capture_output=True, text=True, timeout=PATIENT)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "html" / "tutorial.html").exists()


def test_pages_have_titles_that_differ():
    pages = [ROOT / "CONTRIBUTING.md" if page.name == "contributing.md" else page for page in DOCS.glob("*.md")]  # which it includes
    titles = Counter(re.search("^# (.*)", page.read_text(), re.MULTILINE)[1] for page in pages)
    assert [title for title, count in titles.items() if count > 1] == []


def test_the_page_of_the_interface_has_every_exported_name():
    text = (DOCS / "from-python.md").read_text()
    assert [name for name in mc.__all__ if not re.search(rf"\b{name}\b", text)] == []


def there(name: str) -> bool:
    """Whether a module of the package, or what it defines, has this name below `mpi_compress`."""
    place = import_module("mpi_compress")
    for part in name.split("."):
        try:
            place = getattr(place, part)
        except AttributeError:
            try:
                place = import_module(f"{place.__name__}.{part}")
            except (AttributeError, ImportError):
                return False
    return True


def test_what_the_maths_page_names_is_there():
    named = re.findall(r"`mpi_compress\.([\w.]+)`", (DOCS / "maths.md").read_text())
    assert len(named) > 40
    assert [name for name in named if not there(name)] == []


def test_what_the_page_of_the_house_names_is_there():
    text = (DOCS / "contributing.md").read_text()
    rooms = re.findall(r"^\| (\d+) \| `([\w/]+)/` ", text, re.MULTILINE)
    assert {room.replace("/", "."): int(floor) for floor, room in rooms} == FLOORS
    named = [name for name in re.findall(r"`([a-z]+\.[\w.]+)`", text) if name.partition(".")[0] in FLOORS]
    assert len(named) > 20
    assert [name for name in named if not there(name)] == []


def test_the_page_of_job_files_names_every_key():
    text = (DOCS / "jobs.md").read_text()
    records = [r for r in vars(tables).values() if is_dataclass(r) and r.__module__ == tables.__name__]
    for record in (*records, DataTable, Stop, TuneTable):
        for key in fields(record):
            if key.init and key.name != "parameters":
                assert f"`{key.name}`" in text, f"{record.__name__}: {key.name}"


def test_the_job_that_readme_shows_is_the_demo():
    def plain(text: str) -> list[str]:
        return [line for line in (re.sub(r"\s*#.*", "", line) for line in text.splitlines()) if line]

    (shown,) = [block for language, block in FENCED.findall((ROOT / "README.md").read_text()) if language == "toml" and "[data]" in block]
    whole = iter(plain((ROOT / "jobs" / "demo.toml").read_text()))
    assert [line for line in plain(shown) if line not in whole] == []  # in this order
    assert "without its costs, two of its runs" in (ROOT / "README.md").read_text()
    assert shown.count("[[run]]") == len(load_job(ROOT / "jobs" / "demo.toml").runs) - 2


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda p: p.name)
def test_links_between_files_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda p: p.name)
def test_no_placeholder_reaches_a_page(page):
    """A name in braces is a role of MyST, or stands in code; else a text was printed before its grid filled it."""
    shown = re.sub(r"^(```+).*?^\1$|`[^`\n]*`", "", re.sub(r"\{doc\}`[^`]*`", "", page.read_text()), flags=re.MULTILINE | re.DOTALL)
    assert re.findall(r"\{[a-z]\w*\}", shown) == []


def test_the_table_of_bits_has_ten_vectors():
    with (DOCS / "bits.csv").open(encoding="utf-8", newline="") as file:
        counts = Counter(row["vector"] for row in csv.DictReader(file))
    assert len(counts) == 10
    assert len(set(counts.values())) == 1


def test_the_audit_of_bits_counts_what_its_jobs_count():
    counts = [tomllib.loads(file.read_text())["log"].get("count") for file in JOBS.glob("*.toml")]
    counted = [set(count) for count in counts if count]
    assert len(counted) > 10
    assert all(count >= set(COUNTED) for count in counted)


def test_every_claim_of_a_job_that_was_played_has_a_verdict():
    """What is committed is what was measured: a claim is not left out because it asks for a column that its runs do not have."""
    text = "".join((DOCS / page).read_text(encoding="utf-8") for page in ("figures.md", "figures-deep.md"))
    done = re.findall(r"^\|[^|]*\| \[([\w/-]+)\]\([^|]*\|[^|]*\|[^|]*\| done \| (.*) \|$", text, re.MULTILINE)
    assert len(done) > 40
    assert [job for job, claims in done if "not run" in claims] == []


@pytest.mark.parametrize("script", sorted([*DOCS.glob("*.py"), *ROOT.glob("benchmarks/*.py")]), ids=lambda file: file.stem)
def test_what_a_script_imports_of_the_package_is_there(script):
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mpi_compress."):
            module = import_module(node.module)
            there = [hasattr(module, alias.name) or find_spec(f"{node.module}.{alias.name}") for alias in node.names]
            assert all(there), (node.module, [alias.name for alias in node.names])


def test_the_needs_of_methods_are_all_named():
    (line,) = re.findall(r"^- \*\*What it needs\..*$", (DOCS / "own-algorithm.md").read_text(), re.MULTILINE)
    assert {*re.findall(r"`([A-Z_]+)`", line)} == {name for name, held in vars(mc.algorithms.needs).items() if isinstance(held, mc.algorithms.needs.Need)}


def test_the_table_of_kinds_says_what_they_take_and_which_codecs_write_them():
    rows = re.findall(r"^\| `(\w+)` \| .* \| (.+) \| (.+) \|$", (DOCS / "own-compressor.md").read_text(), re.MULTILINE)
    found = {name: (re.findall(r"\w+", given), set(by.split(", "))) for name, given, by in rows}
    kinds = {name: getattr(mc, name) for name in mc.__all__ if isinstance(getattr(mc, name), type) and issubclass(getattr(mc, name), mc.Compressed)}
    assert {*kinds} - {"Compressed", "WithScalar"} == {*found}
    for name, (given, by) in found.items():
        assert [each.name for each in fields(kinds[name]) if not each.name.endswith("ends")] == given
        assert {codec for codec in mc.codecs if mc.codecs[codec]().writes(kinds[name])} == {*by, "auto"}
