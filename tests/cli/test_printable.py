"""What is printed, written and drawn of a result that nobody need trust is printable, and escaped for what reads it."""

import io
import json
import os
import pty
import re
import subprocess
import zipfile
from contextlib import redirect_stderr, redirect_stdout, suppress
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import h5py
import pytest
from helpers.running import BIN, GSPAR

import mpi_compress as mc
from mpi_compress.cli.main import main
from mpi_compress.core.tables import WRITERS, html
from mpi_compress.core.terminal import printable, say
from mpi_compress.results.checksums import SLOTS

HOSTILE = "a\x1b[2J\x1b]0;t\x07\u202egnol\u2066\x9b31m\r\n\x00<img src=x onerror=alert(1)>[b](javascript:x)`*_c_*`|$\\input{x}$ & \\end"
UNPRINTABLE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    """A folder with a result whose texts are hostile, in a file as an earlier version would have written it, without checksums."""
    monkeypatch.chdir(tmp_path)
    job = {"data": GSPAR, "algorithm": {"name": "gd"}, "workers": {"count": 2}, "stop": {"rounds": 3}}
    (run,) = mc.run({**job, "title": "one"}, out="results")
    file = run.file.rename(run.file.with_name("one\x1b[2J\u202e.h5"))
    with h5py.File(file, "r+") as h5:
        for name, value in [*h5.attrs.items()]:
            if isinstance(value, str) and name not in ("format", "job", "status") and not value.startswith(("{", "[")):
                h5.attrs[name] = HOSTILE.replace("\x00", "")
        h5.attrs["versions"] = json.dumps({HOSTILE: HOSTILE})
        h5.attrs["settled"] = json.dumps({HOSTILE: 1.0})
        for name in {*SLOTS} & {*h5.attrs}:
            del h5.attrs[name]
    return file


COMMANDS = [
    ["show", "FILE"], ["table", "FILE"], ["table", "FILE", "--to", "loss=0.9"], ["results", "ls"], ["results", "ls", "--check"],
    ["plot", "FILE", "-o", "figure.png"], ["watch", "FILE", "--once"], ["results", "rm", "FILE"], ["show", "FILE", "FILE"],
    ["show", "nowhere\x1b[2J\u202e"], ["run", "nowhere\x1b[2J\u202e.toml"], ["data", "info", "x\x1b[2J"], ["x\x1b[2J"],
]  # fmt: skip


@pytest.mark.parametrize("line", COMMANDS, ids=lambda line: " ".join(line[:2]).encode("ascii", "replace").decode())
def test_commands_print_no_escape_sequence(line, hostile):
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out), suppress(SystemExit):  # argparse's
        main([str(hostile) if word == "FILE" else word for word in line])
    assert not UNPRINTABLE.search(out.getvalue()), out.getvalue()
    assert out.getvalue()


def test_on_a_terminal_nothing_is_printed_raw_but_our_own_colours(hostile):
    master, slave = pty.openpty()
    process = subprocess.Popen([BIN / "mpi-compress", "results", "ls"], stdout=slave, stderr=slave, env={**os.environ, "COLUMNS": "200"})
    process.wait()
    os.close(slave)
    said = os.read(master, 100_000).decode()
    os.close(master)
    assert r"a\x1b[2J" in said
    assert not UNPRINTABLE.search(re.sub("\x1b\\[[01]m|\r\n|\r *\r", "", said)), said


def test_a_result_prints_as_one_printable_line(hostile):
    assert repr(mc.read(hostile)).isprintable()
    assert mc.read(hostile).label == printable(HOSTILE.replace("\x00", ""))


class Tags(HTMLParser):
    def __init__(self, text: str):
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append(tag)


def test_each_format_has_one_function_that_escapes():
    heads, rows = ["run", HOSTILE], [[HOSTILE, "1"]]
    assert {*Tags(html(heads, rows, HOSTILE)).found} == {"table", "caption", "tr", "th", "td"}
    for write in (html, *WRITERS.values()):
        assert not UNPRINTABLE.search(write(heads, rows, HOSTILE))
    written = WRITERS[".md"](heads, rows, HOSTILE)
    assert not re.search(r"(?<!\\)[<>`*\[\]$]", written)
    assert len(written.splitlines()) == 5
    written = WRITERS[".tex"](heads, rows, HOSTILE)
    assert r"\input" not in written
    assert [line for line in written.splitlines() if line.startswith("%")] == [r"% \usepackage{booktabs,tabularx}"]


def test_tables_archives_and_figures_of_such_a_result_are_escaped(hostile):
    for ending in (".md", ".tex", ".csv"):
        assert main(["table", str(hostile), "--to", "loss=0.9", "-o", f"t{ending}"]) == 0
        assert not UNPRINTABLE.search(Path(f"t{ending}").read_text(encoding="utf-8"))
    assert r"\<img src=x" in Path("t.md").read_text(encoding="utf-8")
    assert main(["plot", str(hostile), "-o", "figure.svg"]) == 0
    tree = ElementTree.parse("figure.svg")
    assert not any(each.tag.endswith(("img", "script")) for each in tree.iter())
    assert r"$\input{x}$" in "".join(tree.getroot().itertext())


def test_the_readme_of_an_archive_leaves_no_markup_of_a_result(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.toml").write_text(
        'title = "<img src=x onerror=alert(1)>"\ndata = { generator = "gspar", samples = 50, dim = 20 }\nstop.rounds = 2\n'
        '[[run]]\nlabel = "[x](javascript:y) <b>"\nalgorithm = { name = "gd" }\n'
    )
    assert main(["run", "job.toml", "--quiet"]) == 0
    assert main(["archive", "job.toml", "-o", "a.zip"]) == 0
    text = zipfile.ZipFile("a.zip").read("README.md").decode()
    assert not re.search(r"(?<!\\)<|(?<!\\)\[x", text)


def test_own_colours_pass_and_others_do_not(capsys):
    say("\x1b[1mhead\x1b[0m \x1b[2J \x1b[5m")
    assert capsys.readouterr().out == "\x1b[1mhead\x1b[0m \\x1b[2J \\x1b[5m\n"
