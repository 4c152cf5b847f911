"""Tables of what methods needed to reach a target."""

import csv
import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from helpers.losses import written
from helpers.running import run_of

import mpi_compress as mc
from mpi_compress import UserError
from mpi_compress.cli.main import main
from mpi_compress.cli.show import _settings as shown_settings
from mpi_compress.cli.show import summary
from mpi_compress.core.tables import comma_separated, latex, markdown, plain
from mpi_compress.evidence.comparison import compare, names_apart
from mpi_compress.evidence.crossings import statements
from mpi_compress.evidence.method_status import endings
from mpi_compress.results.targets import Target, in_signs, typed


@pytest.fixture
def runs(tmp_path):
    return [
        written(tmp_path, "slow", [1.0, 0.9, 0.8, 0.35]),
        written(tmp_path, "never", [1.0, 0.9, 0.8, 0.7]),
        written(tmp_path, "wild", [1.0, 9.0, 99.0], status="diverged", reason="the loss rose"),
        *(written(tmp_path, "fast", losses, seed) for seed, losses in enumerate(([1.0, 0.3, 0.2, 0.2], [1.0, 0.5, 0.3, 0.2]))),
    ]


def test_the_first_row_at_or_below_a_level_or_none(tmp_path):
    run = written(tmp_path, "a", [1.0, 0.5, 0.4, 0.6])
    row = run.to("loss", 0.5)
    assert (row["round"], row["loss"], row["wire_bits_up"], row["seconds"], row["label"]) == (1, 0.5, 1000, 2.0, "a")
    assert row["wire_bits"] == 1010, "derived columns too"
    with pytest.raises(KeyError, match="no column called 'los'"):
        row["los"]
    assert run.to("loss", 0.39) is None
    assert run.to("loss", 0.55, rising=True)["round"] == 0
    with pytest.raises(UserError, match="did you mean 'loss'"):
        run.to("lss", 0.5)
    assert run.to("wire_bits_up", 1500)["round"] == 2, "a budget: the first row that has spent it"


def test_a_derived_column_is_no_column_of_the_trace(tmp_path):
    run = written(tmp_path, "a", [1.0])
    with pytest.raises(KeyError, match="wire_bits"):
        run.trace["wire_bits"]
    assert "wire_bits" not in run.trace
    assert run.column("wire_bits").tolist() == [0]


def test_what_a_step_was_tuned_for_is_said_in_words(tmp_path):
    run = written(tmp_path, "a", [1.0, 0.5, 0.4])
    tuned = {"parameter": "algorithm.step", "value": 1, "by": "wire_bits_up", "to": "loss ≤ 0.45", "tried": [], "settled": True}
    run.attrs["tuned"] = json.dumps(tuned)
    table = compare([run], [Target.of("loss", 0.45)], "seconds")
    assert table.notes == ["tuned for uplink bits on the wire to loss ≤ 0.45, so another value may need less here: a"]
    run.attrs["tuned"] = json.dumps({**tuned, "by": "paper_bits"})
    assert compare([run], [Target.of("loss", 0.45)]).notes == [
        "tuned for uplink and downlink bits by the papers' formula to loss ≤ 0.45, so another value may need less here: a"
    ]


def test_a_small_gradient_at_a_larger_loss_may_be_of_another_stationary_point(tmp_path):
    def ends_at(label, seeds, gap=False):  # whose gradient falls, to its loss less 0.3
        made = [written(tmp_path / f"{gap}", label, [1.0, loss], seed, gap=gap) for seed, loss in enumerate(seeds)]
        for run in made:
            run.trace["grad_norm"][-1] = 1e-9
            run.attrs["f_star"] = 0.1 if gap else math.nan
        return made

    runs = [*ends_at("GD", [0.4, 0.401]), *ends_at("EF21", [0.4, 0.5])]
    found = compare(runs, [Target.of("squared_grad_norm", 1e-4)])
    assert [row[1] for row in found.cells] == ["1 kbit", "1 kbit ¹"]
    assert found.notes == ["¹ perhaps at other stationary points: the loss ends at up to 0.5, the least at 0.4"]
    assert not compare(runs, [Target.of("loss", 0.6)]).notes, "a loss says itself where it is"
    for run in runs[2:]:
        run.attrs["job"] += "[objective]\nmu = 0.1\n"
    found = compare(runs, [Target.of("squared_grad_norm", 1e-4)])
    assert [row[1] for row in found.cells] == ["1 kbit", "1 kbit ¹"], "the seeds of one function"
    assert not compare([*runs[:2], *runs[3:]], [Target.of("squared_grad_norm", 1e-4)]).notes, "another function has other points"
    known = [*ends_at("GD", [0.4], gap=True), *ends_at("EF21", [0.5], gap=True)]
    assert not compare(known, [Target.of("squared_grad_norm", 1e-4)]).notes, "f* is known, and there is but one"


def test_methods_come_in_the_order_of_what_they_took_and_those_that_do_not_come_down_last(runs):
    table = compare(runs, [Target.of("loss", 0.4), Target.of("loss", 0.75)])
    assert table.cells == [
        ["fast", "1.5 kbit (1 … 2)", "1 kbit"],
        ["slow (1 of 2 seeds)", "3 kbit", "3 kbit"],
        ["never (1 of 2 seeds)", "not reached ¹", "3 kbit"],
        ["wild (1 of 2 seeds)", *["not reached ²"] * 2],
    ]
    assert table.heads == ["method", "loss ≤ 0.4", "≤ 0.75"]
    assert table.notes[:2] == ["¹ not reached in 3 kbit (0.7 at the end)", "² not reached (diverged in round 2)"]
    assert table.caption == "uplink bits, on the wire, over all workers; median (range) over 1 to 2 seeds"
    assert [cells[1] for cells in compare(runs, [Target.of("loss", 0.4)], "seconds").cells[:2]] == ["3 s (2 … 4)", "6 s"]
    assert compare(runs, [Target.of("loss", 0.4)], "round").cells[1][1] == "3"
    rising = compare(runs, [Target("grad_norm", 5.0, True)])
    assert (rising.cells[0][1], rising.notes[0]) == ("1 kbit ¹", "¹ 1 of 1 diverged later")


def test_a_target_that_some_seeds_reach_says_how_many(tmp_path):
    runs = [written(tmp_path, "a", losses, seed) for seed, losses in enumerate(([1.0, 0.3], [1.0, 0.9], [1.0, 0.2]))]
    found, half = compare(runs, [Target.of("loss", 0.4)]), compare(runs[:2], [Target.of("loss", 0.4)])
    assert found.cells == [["a", "1 kbit ¹"]]
    assert found.notes == ["¹ reached by 2 of 3 seeds, in 1 kbit; by the others not reached in 1 kbit (0.9 at the end)"]
    assert (half.cells, half.notes[0][:39]) == ([["a", "not reached ¹"]], "¹ reached by 1 of 2 seeds, in 1 kbit; b")


def test_a_gap_to_an_unknown_optimum_is_not_a_gap_that_is_not_reached(tmp_path):
    run = written(tmp_path, "a", [1.0, 0.3], gap=False)
    found = compare([run], [Target.of("suboptimality", 0.4)])
    assert (found.cells, found.notes) == ([["a", "– ¹"]], ["¹ f* is not known"])
    assert endings([run])[1][0][3] == "–"


@pytest.mark.parametrize(("accuracy", "target", "note"), [
    (0.0, 1e-16, "¹ f* is known to 3e-16, and the target is below that"), (0.0, 1e-15, ""),
    (1e-9, 1e-10, "¹ f* is known to 1e-09, and the target is below that"), (1e-9, 1e-8, ""), (math.nan, 1e-10, ""),
])  # fmt: skip
def test_a_target_below_what_f_star_is_known_to_has_a_note(accuracy, target, note, tmp_path):
    run = written(tmp_path, "a", [1.0, 0.3])
    run.trace["suboptimality"][-1] = 0.0
    run.attrs["f_star_accuracy"] = accuracy
    found = compare([run], [Target.of("suboptimality", target), Target.of("loss", 1e-16)])
    assert found.cells[0][1] == "1 kbit" + " ¹" * bool(note)
    assert [each for each in found.notes if "f* is known" in each] == [note] * bool(note)


@pytest.mark.parametrize(("gap", "shown"), [(-5.55e-17, "0"), (3e-16, "0"), (2e-12, "2e-12"), (-1e-9, "-1e-09")])
def test_a_gap_that_rounding_decides_is_0(gap, shown, tmp_path):
    run = written(tmp_path, "a", [1.0, 0.3])
    run.trace["suboptimality"][-1] = gap
    assert endings([run])[1][0][3] == shown


def test_runs_of_several_seeds_end_in_one_row_and_a_line_says_what_is_not_complete(tmp_path):
    runs = [written(tmp_path, "a", [1.0, loss], seed) for seed, loss in enumerate((0.3, 0.5, 0.7))]
    runs += [written(tmp_path, "b", [1.0, 0.2]), written(tmp_path, "b", [1.0, 9.0], 1, "diverged", reason="the loss rose")]
    runs += [written(tmp_path, "c", [1.0], 0, "diverged", reason="the loss rose")]
    heads, rows, notes = endings(runs)
    assert heads == ["method", "status", "loss", "suboptimality", "up", "down", "time", "ended by"]
    assert [row[:3] for row in rows] == [["a", "complete", "0.5"], ["b", "1 complete, 1 diverged", "4.6"], ["c", "diverged", "1"]]
    assert notes == ["medians over 1 to 3 seeds", "1 complete, 1 diverged (the loss rose): b", "diverged (the loss rose): c"]


def test_a_complete_run_that_ends_above_its_start_is_said_so_at_any_target_and_without(tmp_path):
    runs = [written(tmp_path, "up", [0.5, loss, loss], seed) for seed, loss in enumerate((300.0, 400.0, 0.4))]
    runs += [written(tmp_path, "level", [1.0, 1.0001]), written(tmp_path, "wild", [1.0, 9.0], 0, "diverged")]
    heads, rows, notes = endings(runs)
    assert [row[heads.index("status")] for row in rows] == ["complete, loss rose in 2 of 3 seeds", "complete", "diverged"]
    assert notes[-1] == (said := "loss rose from 0.5 to 350 in 2 of 3 seeds: up")
    assert said in compare(runs, [Target.of("loss", 0.45)]).notes
    assert "  up: complete; loss rose from 0.5 to 300" in summary(runs[0])


def test_runs_of_one_name_are_told_apart_by_what_differs(tmp_path):
    one, other = (written(tmp_path, "GD", [1.0], step=step) for step in (0.5, 1.0))
    assert names_apart([one, other]) == ["GD (algorithm.step = 0.5)", "GD (algorithm.step = 1.0)"]
    elsewhere = written(tmp_path / "b", "GD", [1.0])
    assert names_apart([other, elsewhere]) == [f"GD ({tmp_path.name})", "GD (b)"]
    seed_0, seed_1 = (written(tmp_path, "GD", [1.0], seed, step=step) for seed, step in ((0, 0.5), (1, 1.0)))
    assert names_apart([seed_0, seed_1]) == ["GD (seed = 0, algorithm.step = 0.5)", "GD (seed = 1, algorithm.step = 1.0)"]
    assert names_apart([seed_0, seed_1], several_seeds=True) == ["GD (algorithm.step = 0.5)", "GD (algorithm.step = 1.0)"]


def test_tables_in_three_formats(runs, tmp_path):
    runs.append(written(tmp_path, "50 % | x_1", [0.1]))
    table = compare(runs, [Target.of("loss", 0.4)])
    assert markdown(table.heads, table.cells, table.caption).splitlines()[2:6] == [
        "| method | loss ≤ 0.4 |", "| --- | --- |", "| 50 % \\| x_1 (1 of 2 seeds) | 0 bit |", "| fast | 1.5 kbit (1 … 2) |",
    ]  # fmt: skip
    assert markdown(table.heads, table.cells, texts=1).splitlines()[1] == "| --- | ---: |"
    lines = latex(table.heads, table.cells, table.caption).splitlines()
    assert lines[1:3] == [r"\begin{table}", rf"\caption{{U{table.caption[1:]}}}"]
    assert lines.pop(3).startswith(r"\footnotesize")
    assert lines[3:5] == [r"\begin{tabularx}{\columnwidth}{@{}>{\raggedright\arraybackslash}Xr@{}}", r"\toprule"]
    level, numbers = r"\begin{tabular}[b]{@{}r@{}}loss\\$\le$ 0.4\end{tabular}", r"\begin{tabular}[t]{@{}r@{}}1.5 kbit\\(1--2)\end{tabular}"
    assert lines[5:8] == [rf"method & {level} \\", r"\midrule", r"50 \% $|$ x\_1 (1 of 2 seeds) & 0 bit \\"]
    assert lines[8] == rf"fast & {numbers} \\"
    rows = list(csv.reader(comma_separated(*table.numbers).splitlines()))
    assert rows[0][:3] == ["method", "seeds", "wire_bits_up to loss<=0.4"]
    assert rows[2] == ["fast", "2", "1500", "1000", "2000", "2", "", "payload"]
    assert rows[-1][:-2] == ["wild", "1", "", "", "", "0"]
    assert [line.index("loss" if i == 0 else "0 bit") for i, line in enumerate(plain(table.heads, table.cells)[:2])] == [27, 27]


def test_in_a_file_methods_of_long_labels_have_numbers_by_which_notes_name_them(tmp_path):
    labels = [f"EF21 with a heavy-ball server, momentum 0.{i}, top-k" for i in range(1, 7)]
    runs = [written(tmp_path, label, [0.5, 300.0 + i, 0.6, 0.6]) for i, label in enumerate(labels)]
    others = [*runs, written(tmp_path, "GD", [0.9, 0.9, 0.8, 0.7])]
    two = f"{labels[0]}; {labels[1]}"
    for those, name, rose in (
        (others, f"(1) {labels[0]}", "(1); (2); (3); (4); (5); (6)"), (runs, f"(1) {labels[0]}", "all methods"), (runs[:2], labels[0], two),
    ):  # fmt: skip
        table = compare(those, [Target.of("loss", 0.4)]).in_file
        assert table.cells[0][0] == name
        assert table.notes_of()[-1] == f"loss rose from 0.5 to 0.6: {rose}"
        assert table.numbers[1][0][0] == labels[0], "CSV has labels alone"


@pytest.mark.parametrize("text", ["loss", "loss=", "loss=low", "=3", "loss>3", "loss=inf", "loss=nan"])
def test_what_is_no_target_is_refused(text):
    with pytest.raises(UserError, match="--to "):
        typed(text)


def test_a_target_as_it_is_typed():
    assert typed("loss=4e-1") == typed(" loss = 0.4") == ("loss", 0.4)
    assert typed("shares-won=0.9") == ("shares-won", 0.9), "the error then names the column, which has _ for -"
    assert Target.of("loss", 0.4) == Target("loss", 0.4, False)
    assert Target.of("test_accuracy", 0.9) == Target("test_accuracy", 0.9, True)
    assert Target.of("shares_won", 0.9, ["shares_won"]).rising
    assert Target.of("wire_bits", 1e9).rising
    for text in ("test_accuracy>=0.9", "loss<=0.4"):
        with pytest.raises(UserError, match=f"--to {text}: write {text.replace('>', '').replace('<', '')};"):
            typed(text)


def test_why_a_run_ended(tmp_path):
    assert written(tmp_path, "a", [1.0] * 4).ended_by == "3 rounds"
    assert written(tmp_path, "b", [1.0, 0.4], more="loss = 0.5").ended_by == "loss ≤ 0.5"
    assert written(tmp_path, "c", [1.0, 1.0], more="wire_bits_up = 500").ended_by == "wire_bits_up ≥ 500"
    assert written(tmp_path, "d", [1.0, 1.0], more='seconds = "5 min"').ended_by == "5 min"
    assert written(tmp_path, "e", [1.0], status="diverged", reason="too far").ended_by == "too far"


@pytest.mark.parametrize(("text", "hint"), [
    ("‖∇f‖²=1e-4", "; ‖∇f‖² is the column squared_grad_norm"), ("‖∇f(x)‖=1", "; ‖∇f‖ is the column grad_norm"),
    ("f(x) − f*=1", "; f − f* is the column suboptimality"), ("loss=a", ""), ("=1", ""), ("foo bar=1", ""),
])  # fmt: skip
def test_a_target_in_a_figure_s_signs_is_told_its_column(text, hint):
    with pytest.raises(UserError, match=re.escape(f"--to {text}: COLUMN=LEVEL is required, such as loss=0.4 or test_accuracy=0.9{hint}") + "$"):
        typed(text)


def test_show_says_nothing_of_a_suboptimality_that_is_not_known(tmp_path):
    run = run_of(tmp_path, {"name": "gd"}, rounds=2, up={"compressor": {"name": "top-k", "k": 1}}, objective={"mu": 0.1, "f_star": "skip"})
    text = "\n".join(summary(run))
    assert "suboptimality" not in text
    assert "1 coordinate a round" in text


def test_the_command_prints_and_writes_the_table(runs, tmp_path, capsys):
    files = [str(run.file) for run in runs]
    assert main(["table", *files, "--to", "loss=0.4", "--by", "cost_up", "-o", str(tmp_path / "deep" / "t.md")]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("uplink cost, by the papers' formula; ")
    assert out[2].split() == ["fast", "4.5", "bit", "(3", "…", "6)"]
    assert (tmp_path / "deep" / "t.md").read_text().count("\n| ") == 6
    assert "\n\n¹ not reached in 9 bit (0.7 at the end)\n" in (tmp_path / "deep" / "t.md").read_text()
    assert main(["table", *files]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].split()[:4] == ["method", "status", "loss", "suboptimality"]
    assert out[4].startswith("fast    complete  0.2")
    assert out[5:7] == ["medians over 1 to 2 seeds", "diverged (the loss rose): wild"]
    assert main(["table", *files, "--to", "loss=0.4", "-o", "t.txt"]) == 2
    assert main(["table", files[0], files[0]]) == 0
    assert "2 results are of one run and seed: slow (slow01.0)" in capsys.readouterr().err


def test_what_is_set_from_outside_is_in_names_and_in_what_show_prints(tmp_path, capsys):
    run = written(tmp_path, "GD", [1.0])
    run.attrs["overridden"] = '{"stop.rounds": 3, "seed": 2}'
    assert names_apart([run]) == ["GD, rounds = 3"]
    assert ("--set", "stop.rounds = 3, seed = 2") in [*shown_settings(run)]


def test_a_value_that_the_job_now_has_is_no_longer_named(tmp_path, capsys):
    """--set rounds = 6, which the job's file says later: the result is the job's, whose label is plain."""
    job, out = tmp_path / "job.toml", ["--out", str(tmp_path)]
    text = 'data = {{ generator = "gspar", samples = 40, dim = 5 }}\nobjective.mu = 0.1\nstop.rounds = {}\nalgorithm.name = "gd"\n'
    job.write_text(text.format(3))
    assert main(["run", str(job), "--set", "stop.rounds=6", *out]) == 0
    assert main(["table", str(job), "--set", "stop.rounds=6", "--to", "loss=0.69", *out]) == 0
    assert "rounds = 6" in capsys.readouterr().out
    job.write_text(text.format(6))
    for command in (["run", str(job)], ["table", str(job), "--to", "loss=0.69"]):
        assert main([*command, *out]) == 0
        said = "".join(capsys.readouterr())
        assert "rounds = 6" not in said
        assert "\njob " in said


def test_a_paper_has_signs_for_heads_and_notes_say_how_far_rows_are_apart(tmp_path):
    run = run_of(tmp_path, {"name": "gd"}, rounds=40, log={"every": 10})
    level = float(run.column("squared_grad_norm")[2])
    (note,) = compare([run], [Target.of("squared_grad_norm", level)]).notes
    assert "up to 50% too much (log.every)" in note  # 20 rounds, of rows that are 10 rounds apart
    sent = run_of(tmp_path, {"name": "ship-data"}, rounds=40, log={"every": 10}, down={"codec": {"float": "bf16"}})
    assert sent.column("round").tolist() == [0, 3]
    for by in ("wire_bits_up", "wire_bits"):
        assert compare([sent], [Target.of("squared_grad_norm", level)], by).notes == [], "all samples go up in round 0"
    (note,) = compare([run], [Target.of("wire_bits_up", float(run.column("wire_bits_up")[1]) + 1)], "loss").notes
    assert "beyond the budget (log.every)" in note
    targets = Target.of("squared_grad_norm", level), Target.of("wire_bits_up", float(run.column("wire_bits_up")[1]) + 1)
    first, second = compare([run], targets, "round").notes
    assert first.startswith(f"{targets[0]} is read at logged rows, so up to 50% too much (log.every): ")
    assert second.startswith(f"{targets[1]} is read at logged rows, so up to ")
    assert " beyond the budget (log.every): " in second
    asked = ["table", str(run.file), "--to", "squared_grad_norm=1e-30", "-o", str(tmp_path / "t.tex"), "-o", str(tmp_path / "t.md")]
    assert main(asked) == 0
    assert "| method | " in (tmp_path / "t.md").read_text(), "each file that is asked for"
    assert r"$\|\nabla f(x)\|^{2}$\\$\le 10^{-30}$" in (tmp_path / "t.tex").read_text()


def test_a_level_is_one_number_in_heads_and_notes_of_a_paper_s_table(tmp_path):
    """Which both call the column as papers do, too."""
    run = run_of(tmp_path, {"name": "gd"}, rounds=400, log={"every": 20})
    targets = [f"--to=squared_grad_norm={level}" for level in (1e-2, 1e-3, 2e-5)]
    assert main(["table", str(run.file), "--by", "round", *targets, "-o", str(tmp_path / "t.tex")]) == 0
    heads, notes = (tmp_path / "t.tex").read_text().split(r"\bottomrule")
    for level in ("0.01", "0.001", r"2$\times10^{-5}$"):
        assert rf"$\le$ {level}" in heads
        assert rf"$\|\nabla f(x)\|^{{2}} \le$ {level} is read at logged rows" in notes
    assert in_signs("loss ≤ 2e-05, grad_norm ≥ 1e+06, n ≤ 0.001") == "f(x) ≤ 2×10⁻⁵, ‖∇f(x)‖ ≥ 10⁶, n ≤ 0.001"


def test_notes_name_other_data_several_cost_models_and_seeds_that_change_nothing(tmp_path):
    data = {"generator": "gspar", "samples": 20, "dim": 4}
    packets, full = {"model": "packet", "c1": "8 B", "c0": "0 B", "pmax": "8 B"}, {"data": {"name": "rcv1"}}
    gd = [run_of(tmp_path, {"name": "gd"}, rounds=3, seed=s, data=data, title="gd", full=full) for s in (0, 1)]
    sgd = {"rounds": 3, "title": "sgd", "cost": packets, "full": full}
    sgd = [run_of(tmp_path, {"name": "sgd", "batch": 1}, None, data, seed=s, **sgd) for s in (0, 1)]
    assert compare(gd + sgd, [Target.of("loss", 0.1)], "cost_up").notes[2:] == [
        of_data := "data: gspar, other data, 20 × 4",
        "each method's default step: gd; sgd", "2 seeds, equal: 1 run: gd",
    ]
    wire = run_of(tmp_path, {"name": "gd"}, rounds=4, data=data, cost={"model": "wire"})
    captions = [compare(each, [Target.of("loss", 0.1)], "cost_up").caption for each in (gd[:1] + sgd[:1], [wire], [gd[0], wire])]
    charges = ["by the papers' formula", "of the bytes sent", "by the papers' formula and of the bytes sent"]
    assert captions == [f"uplink cost, {bits}" for bits in charges]
    assert compare(gd[:1] + sgd, [Target.of("loss", 0.1)]).notes[2:] == [of_data, "each method's default step: gd; sgd"]
    assert main(["table", *(str(run.file) for run in gd), "--to", "loss=0.5", "-o", str(tmp_path / "t.md")]) == 0
    assert f"\n\n{of_data}\n" in (tmp_path / "t.md").read_text()
    assert f"; {of_data}" in (tmp_path / "t.md").read_text().partition("| method")[0]


def test_methods_that_several_cost_models_count_are_in_a_block_for_each(tmp_path, capsys):
    """In a file, too; a CSV has a column of them."""
    data, packets = {"generator": "gspar", "samples": 20, "dim": 4}, {"model": "packet", "c1": "8 B", "c0": "0 B", "pmax": "8 B"}
    each = [(title, cost) for cost in (packets, {"model": "payload"}) for title in ("gd", "slow")]
    runs = [run_of(tmp_path, {"name": "gd", "step": "1/L" if t == "gd" else "0.5/L"}, rounds=9, data=data, title=t, cost=c) for t, c in each]
    table = compare(runs, [Target.of("loss", 0.67)], "cost_up")
    first = ["costs by packet, c1 = 8 B, c0 = 0 B, pmax = 8 B:", "gd", "slow", "costs by payload:", "gd", "slow"]
    assert [row[0].partition(" (")[0] for row in table.cells] == first
    assert [*map(len, table.cells)] == [2] * 6
    assert table.cells[0][1] == table.cells[3][1] == ""
    assert not any(note.startswith("costs by") for note in table.notes)
    assert len(compare(runs, [Target.of("loss", 0.67)]).cells) == 4, "bits are bits"
    for suffix, sign in ((".md", "| "), (".tex", ""), (".csv", None)):
        file = tmp_path / f"t{suffix}"
        assert main(["table", *(str(run.file) for run in runs), "--to", "loss=0.67", "--by", "cost_up", "-o", str(file)]) == 0
        lines = file.read_text().splitlines()
        assert sum(line.startswith(f"{sign}costs by") for line in lines) == 2 * (sign is not None)
    assert [line.rpartition(",")[2].strip('"') for line in lines][-1] == "payload"
    capsys.readouterr()


def test_a_table_in_a_file_stands_alone(tmp_path):
    """Its caption has the data and the cost model, and its notes name all methods. Its jobs name no paper."""
    data, packets = {"generator": "gspar", "samples": 20, "dim": 4}, {"model": "packet", "c1": "8 B", "c0": "0 B", "pmax": "8 B"}
    runs = [run_of(tmp_path, {"name": "gd"}, rounds=3, seed=s, data=data, title=f"gd {i}", cost=packets) for i in range(6) for s in (0, 1)]
    runs.append(run_of(tmp_path, {"name": "gd", "step": "0.1/L"}, rounds=3, data=data, title="slow", cost=packets))
    table = compare(runs, [Target.of("loss", 0.6)], "cost_up")
    assert any(note.endswith(" and 2 more") for note in table.notes)
    assert not any(" more" in note for note in compare(runs[:10], [Target.of("loss", 0.6)], "cost_up").notes), "the fifth is named, not counted"
    assert compare(runs, [Target.of("loss", 0.6)], "seconds").caption.startswith("time, as this machine took it")
    asked = ["table", *(str(run.file) for run in runs), "--to", "loss=0.6", "--by", "cost_up", "-o"]
    for file in ("t.md", "t.tex"):
        assert main([*asked, str(tmp_path / file)]) == 0
        text = (tmp_path / file).read_text()
        assert "data: gspar, 20 " in text.partition("gd 0")[0]
        assert "costs by packet, c1 = 8 B, c0 = 0 B, pmax = 8 B" in text.partition("gd 0")[0]
        assert "2 seeds, equal: 1 run: gd 0; gd 1; gd 2; gd 3; gd 4; gd 5\n" in text.replace(r"\par", "")


def test_a_clock_without_links_and_a_target_below_the_accuracy_of_f_star_have_tables(tmp_path):
    job = {
        "data": {"generator": "gspar", "samples": 20, "dim": 4}, "objective": {"mu": 0.1}, "workers": {"count": 1}, "stop": {"rounds": 30},
        "algorithm": {"name": "gd", "step": 0.5}, "time": {"compute": {"law": "sqrt", "unit": "1 s"}},
    }  # fmt: skip
    runs = mc.run(mc.load_job(job, name="clock"), out=tmp_path, quiet=True)
    table = compare(runs, [Target.of("loss", 0.69)], "model_seconds")
    assert table.whole_caption == (
        "time by the model; data: gspar, 20 × 4, µ = 0.1, 1 worker; compute.law = sqrt, compute.unit = 1 s for a round's work"
    )
    near = [replace(run, attrs={**run.attrs, "f_star": 0.0, "f_star_accuracy": np.float64(0.9)}) for run in runs]
    for run in near:
        run.trace["suboptimality"] = run.trace["loss"].copy()
    (method,) = compare(near, [Target.of("suboptimality", 0.69)], "round").methods
    assert "f* is known to 0.9, and the target is below that" in method.cells[0].why


def test_a_caption_of_modelled_seconds_names_the_links_and_the_law_of_computing(tmp_path):
    links = {f"cost.{way}": {"model": "trace", "rows": [["0 s", "2 ms", f"{rate} Mbit/s"]]} for way, rate in (("up", 1), ("down", 20))}
    job = {
        "data": {"generator": "gspar", "samples": 20, "dim": 4}, "workers": {"count": 2}, "stop": {"rounds": 3},
        "algorithm": {"name": "gd"}, "time": {"compute": {"law": "linear", "unit": "1 ms", "noise": "half-normal"}},
    }  # fmt: skip
    runs = mc.run(mc.load_job(job, links, name="links"), out=tmp_path, quiet=True)
    caption = compare(runs, [Target.of("loss", 0.6)], "model_seconds").whole_caption
    assert caption == (
        f"time by the model; data: gspar, 20 × 4, µ = 0, 2 workers; on links of {runs[0].attrs['links']}, "
        "compute.law = linear, compute.unit = 1 ms, compute.noise = half-normal for a round's work"
    )
    assert "links" not in compare(runs, [Target.of("loss", 0.6)], "round").whole_caption
    faster = mc.load_job(job, {**links, "cost.up.rows": [["0 s", "2 ms", "9 Mbit/s"]]}, name="faster")
    both = compare([*runs, *mc.run(faster, out=tmp_path, quiet=True)], [Target.of("loss", 0.6)], "model_seconds")
    assert not any("wait" in note for note in both.notes)
    blocks = [first.removeprefix("on links of ").partition(", ")[0] for first, *_ in both.cells if first.startswith("on links")]
    assert [method.runs[0].attrs["links"] for method in both.methods] == blocks


def test_a_caption_of_modelled_seconds_has_the_rule_of_arrival_and_notes_where_runs_differ_in_it(tmp_path):
    """Of two jobs that differ in `wait` alone; "fastest" is said of each rule by itself, below tables by this clock alone."""
    job = {
        "data": {"generator": "gspar", "samples": 20, "dim": 4}, "workers": {"count": 3}, "stop": {"rounds": 9},
        "cost": {"model": "trace", "rows": [["0 s", "2 ms", "1 Mbit/s"]]},
        "run": [{"label": label, "algorithm": {"name": "gd", "step": step}} for label, step in (("GD", 0.5), ("slow", 0.25))],
    }  # fmt: skip
    compute, target = {"law": "linear", "unit": "1 ms"}, Target.of("loss", 0.68)
    waits = {"all": {}, "two": {"wait": 2}, "stale": {"wait": 1, "stale": 3}}
    runs = {name: mc.run(mc.load_job({**job, "time": {"compute": compute} | wait}, name=name), out=tmp_path, quiet=True) for name, wait in waits.items()}
    captions = {name: compare(those, [target], "model_seconds").caption for name, those in runs.items()}
    assert captions == {"all": "time by the model", "two": "time by the model, wait = 2", "stale": "time by the model, wait = 1, stale = 3"}
    both = compare(runs["all"] + runs["two"], [target], "model_seconds")
    assert both.caption == "time by the model"
    assert "wait = 2: GD (two); slow (two)" in both.notes
    assert not any("wait" in note for note in compare(runs["all"] + runs["two"], [target], "round").notes)
    first, second = (next(statements(runs[name], target)).partition(", by the model: ")[0] for name in ("all", "two"))
    assert first.endswith(", compute.law = linear, compute.unit = 1 ms for a round's work")
    assert second == f"{first}, wait = 2"


def test_several_numbers_of_workers_stand_in_groups(tmp_path):
    runs = [run_of(tmp_path, {"name": "gd", "step": step}, rounds=20, count=n) for n in (4, 2) for step in ("0.1/L", "1/L")]
    found = compare(runs, [Target.of("loss", float(runs[0].trace["loss"][10]))])
    assert [method.runs[0].attrs["n_workers"] for method in found.methods] == [2, 2, 4, 4]


def test_a_note_says_where_steps_come_from_that_are_not_alike(tmp_path):
    """Neither a method without a step, nor one whose label says it, is named; several methods with the default of each are, for none of them is at its best."""
    tune = {"parameter": "algorithm.step", "values": ["0.5/L", "1/L"], "to": {"loss": 0.6}}
    sparse = {"compressor": {"name": "top-k", "k": 3}}
    job = {
        "data": {"generator": "gspar", "samples": 40, "dim": 12}, "objective": {"mu": "1e-1 L"}, "workers": {"count": 2}, "stop": {"rounds": 30},
        "run": [
            {"label": "EF21", "algorithm": {"name": "ef21", "step": "2 theory"}, "up": sparse}, {"label": "EF", "algorithm": {"name": "ef"}, "up": sparse},
            {"label": "GD", "algorithm": {"name": "gd"}, "tune": tune}, {"label": "CAT", "algorithm": {"name": "cat"}},
            {"label": "data", "algorithm": {"name": "ship-data"}}, {"label": "GD, step = 1/L", "algorithm": {"name": "gd", "step": "1/L"}},
        ],
    }  # fmt: skip
    runs = mc.run(job, out=tmp_path, quiet=True)
    notes = [note for note in compare(runs, [Target.of("loss", 0.6)]).notes if re.match("step |each method's default step: ", note)]
    assert sorted(notes) in (
        [f"each method's default step: {both}", "step 2 theory, given: EF21", "step tuned: GD"] for both in ("CAT; EF", "EF; CAT")
    )
    alike = [run for run in runs if run.label in ("EF", "CAT", "data")]
    assert [note for note in compare(alike, [Target.of("loss", 0.6)]).notes if re.match("step |each method's default step: ", note)] in (
        ["each method's default step: CAT; EF"], ["each method's default step: EF; CAT"],
    )  # fmt: skip
    assert not [note for note in compare(alike[:1], [Target.of("loss", 0.6)]).notes if re.match("step |each method's default step: ", note)], "nothing to compare"
