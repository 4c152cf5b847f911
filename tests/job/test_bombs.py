"""A job file that would take for ever, or all memory, is one line."""

import re
import time

import pytest
from helpers.refusals import naming

from mpi_compress.cli.main import main

HEAD = 'data = { generator = "gspar", samples = 40, dim = 9 }\nalgorithm = { name = "gd" }\nstop = { rounds = 1 }\n'
BOMBS = {
    "arrays in arrays": ("a = " + "[" * 100_000, "too many levels"),
    "tables in tables": ("a = " + "{ b = " * 20_000 + "1" + " }" * 20_000, "levels"),
    "a key of names": (".".join("a" * 20_000) + " = 1", "50"),
    "a key of quoted names": (".".join(['"a"'] * 20_000) + " = 1", "a key has more than 50 names"),
    "digits": (HEAD + "seed = " + "9" * 100_000, "bomb.toml"),
    "a large number": (HEAD + "workers = { count = 1" + "0" * 30 + " }", "0000… is a whole number of more than 64 bits"),
    "a large number in a run": (HEAD + "[[run]]\nseed = 1" + "0" * 400, "64 bits"),
    "a billion workers": (HEAD + "workers = { count = 1000000000 }", "it should be from 1 to 1000000"),
    "a grid": (HEAD + "[grid]\n" + "".join(f'"{key}" = {list(range(1, 100))}\n' for key in ("seed", "workers.count", "stop.rounds", "data.dim")), "96059601 runs are too many for one job"),
    "a claim": (HEAD + "[[claim]]\nid = \"a\"\nsays = \"b\"\nholds = \">= 1\"\nvalue = \"" + "-" * 5000 + "1\"", "claim a: value 5003"),
}  # fmt: skip


@pytest.mark.parametrize("what", BOMBS)
@pytest.mark.parametrize("command", ["plan", "run"])
def test_a_bomb_is_one_line_in_no_time(command, what, tmp_path, capfd):
    text, says = BOMBS[what]
    (tmp_path / "bomb.toml").write_text(text)
    begun = time.process_time()
    assert main([command, str(tmp_path / "bomb.toml"), "--out", str(tmp_path)]) == 2
    assert time.process_time() < begun + 5
    (line,) = (line for line in "".join(capfd.readouterr()).splitlines() if "bomb" in line)
    assert re.search(naming(says), line)
