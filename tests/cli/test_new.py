"""What `new` writes can be run, compared and plotted as it stands."""

import tomllib

from helpers.refusals import refused

import mpi_compress as mc
from mpi_compress.cli.main import main


def test_what_new_writes_runs_as_it_stands(tmp_path, monkeypatch, capsys):
    assert main(["new", str(tmp_path / "first")]) == 0
    assert "mpi-compress run job.toml" in capsys.readouterr().out
    monkeypatch.chdir(tmp_path / "first")
    assert main(["run", "job.toml", "--quiet", "--set", "stop.rounds=40"]) == 0
    assert main(["table", "job.toml", "--to", "suboptimality=0.3", "--set", "stop.rounds=40"]) == 0
    out = capsys.readouterr().out
    assert "near-largest" in out
    assert "not reached" not in out
    assert len(mc.load_job("job.toml").runs) == 3
    assert main(["check-part", "near-largest", "--job", "job.toml"]) == 0


def test_a_package_that_new_writes_has_the_parts_that_it_declares(tmp_path, capsys):
    assert main(["new", "--package", "my-parts", str(tmp_path)]) == 0
    assert main(["new", "--package", "my-parts", str(tmp_path)]) == 2
    declared = tomllib.loads((tmp_path / "pyproject.toml").read_text())["project"]["entry-points"]["mpi_compress.plugins"]
    for part, module in declared.items():
        assert f'register("{part}")' in tmp_path.joinpath(*module.split(".")).with_suffix(".py").read_text()
    refused(["new", "--package", "json"], capsys, "json my-parts")
