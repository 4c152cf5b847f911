"""On which links which method is fastest: by hand, and as `table` and `show` say it."""

import pytest

import mpi_compress as mc
from mpi_compress.cli.main import main
from mpi_compress.evidence.crossings import TimeToTarget, crossing
from mpi_compress.results.columns import column_of

DENSE, TOP = TimeToTarget("dense", 1.0, 0.5, 20e6, False), TimeToTarget("top-10", 2.0, 1.0, 1e6, False)
JOB = """
data = { generator = "gspar", samples = 60, dim = 200 }
objective.mu = "1e-2 L"
workers.count = 2
stop = { loss = 0.5, rounds = 3000 }
cost = { model = "trace", rows = [[0, "5 ms", "RATE"]] }
[[run]]
label = "dense"
algorithm = { name = "gd" }
up = { compressor = "identity", codec = { name = "dense", float = 16 } }
[[run]]
label = "top-10"
algorithm = { name = "ef21", step = "0.5/L" }
up = { compressor = { name = "top-k", k = 10 }, codec = "fixed" }
[[run]]
label = "CAT"
algorithm = { name = "cat" }
up = { compressor = "top-k", codec = "fixed" }
"""


def test_the_crossing_is_where_both_take_the_same():
    """0.5 + 20e6/B = 1 + 1e6/B at B = 19e6/0.5 = 38 Mbit/s: below, fewer bits win."""
    assert crossing(DENSE, TOP) == crossing(TOP, DENSE) == pytest.approx(38e6)
    assert DENSE.on(38e6) == pytest.approx(TOP.on(38e6))
    assert TOP.on(30e6) < DENSE.on(30e6)
    assert TOP.on(50e6) > DENSE.on(50e6)
    assert crossing(DENSE, TimeToTarget("worse", 9.0, 0.6, 21e6, False)) is None
    assert crossing(DENSE, DENSE) is None


def test_table_and_show_say_which_is_fastest_and_below_which_bandwidth_another_one(tmp_path, capsys):
    files, needs = {}, {}
    for rate in ("100 Mbit/s", "1 kbit/s"):
        job = tmp_path / f"{rate[:3].strip()}.toml"
        job.write_text(JOB.replace("RATE", rate))
        runs = mc.run(mc.load_job(job), out=tmp_path)
        assert {run.status for run in runs} == {"complete"}
        needs[rate] = {run.label: (run.to("loss", 0.5)["model_fixed"], run.to("loss", 0.5)["model_bits"]) for run in runs}
        files[rate] = (job, [str(run.file) for run in runs])
    (fixed, bits), (slower, fewer) = needs["1 kbit/s"]["dense"], needs["1 kbit/s"]["top-10"]
    assert (fixed, bits) == needs["100 Mbit/s"]["dense"]  # they do not look at the link
    where = (bits - fewer) / (slower - fixed)
    assert main(["table", str(files["100 Mbit/s"][0]), "--to", "loss=0.5", "--by", "model_seconds", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert column_of("model_seconds").label in said
    assert "100 Mbit/s and 5 ms, " in said
    assert f"it wins below {where / 1e3:.4g} kbit/s, against dense" in said
    assert "its messages follow the link" in said
    by = ["--by", "model_seconds", "--out", str(tmp_path)]
    assert main(["table", str(files["1 kbit/s"][0]), "--to", "loss=0.5", *by]) == 0
    assert f"it wins above {where / 1e3:.4g} kbit/s, against top-10" in capsys.readouterr().out
    assert main(["table", str(files["1 kbit/s"][0]), "--to", "loss=0.6", "--to", "loss=0.5", *by]) == 0
    both = capsys.readouterr().out
    assert [both.count(f"fastest to loss ≤ {level}") for level in (0.6, 0.5)] == [1, 1]
    assert "compute" not in both
    assert main(["table", str(files["1 kbit/s"][0]), "--to", "loss=0.5", "--out", str(tmp_path)]) == 0
    assert "fastest" not in capsys.readouterr().out, "by bits it is no question"
    job = tmp_path / "computing.toml"
    job.write_text(JOB.replace("RATE", "1 kbit/s") + '[time]\ncompute = { law = "equal", unit = "10 ms" }\n')
    mc.run(mc.load_job(job), out=tmp_path)
    assert main(["table", str(job), "--to", "loss=0.5", *by]) == 0
    computing = "compute.law = equal, compute.unit = 10 ms for a round's work"
    assert f"on links of 1 kbit/s and 5 ms, {computing}, by the model: " in capsys.readouterr().out
    assert main(["show", *files["100 Mbit/s"][1]]) == 0
    assert "fastest to loss ≤ 0.4" in capsys.readouterr().out
    assert main(["show", files["100 Mbit/s"][1][0]]) == 0
    assert "s on links of 100 Mbit/s and 5 ms: computing and latency" in capsys.readouterr().out
