"""The page in a real browser: it opens without errors, asks nothing of the network, its controls work, and anyone can use it."""

import os
import shutil

import pytest

import mpi_compress as mc
from mpi_compress import report as pages
from mpi_compress.evidence.comparison import compare
from mpi_compress.job.loading import load_job
from mpi_compress.results.columns import column_of
from mpi_compress.results.targets import Target, typed

playwright = pytest.importorskip("playwright.sync_api", reason='needs pip install "mpi-compress[browser]"')
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason='needs pip install "mpi-compress[browser]"')
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium, such as Debian's package of that name"),
]

JOB = """
title = "Gradient descent and top-3, on five seeds"
paper = "CAT fig. 99"
data = { generator = "least-squares", samples = 60, dim = 30 }
objective = { loss = "least-squares", mu = "1e-2 L" }
workers = { count = 3 }
stop = { rounds = 60 }
[[run]]
label = "GD <b>bold</b>"
algorithm = { name = "gd" }
[[run]]
label = "IADE"
algorithm = { name = "iade" }
[[run]]
label = "top-3 of a minibatch"
algorithm = { name = "sgd", batch = 2 }
up = { compressor = { name = "top-k", k = 3 } }
[grid]
seed = [0, 1]
[figure]
x = "round"
y = "distance"
bounds = ["bound"]
[[claim]]
id = "CAT-99"
says = "the loss is negative"
value = "loss('GD <b>bold</b>')"
holds = "< 0"
why = "it is a sum of squares"
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Two jobs of one title on one problem."""
    folder = tmp_path_factory.mktemp("page")
    files = [folder / "job.toml", folder / "below.toml"]
    for file in files:
        file.write_text(JOB if file.stem == "job" else JOB.replace("rounds = 60", "rounds = 50"))
        mc.run(load_job(file), out=folder)
    return pages.outcomes(files, folder)


@pytest.fixture(scope="module")
def report(found):
    file = found[0].file.with_name("report.html")
    pages.write(found, file)
    return file.as_uri()


@pytest.fixture(scope="module")
def browser():
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=sandbox)
        yield opened
        opened.close()


@pytest.fixture
def visit(browser, report):
    """Opens the page and draws its figure; what went wrong, or was asked of the network, fails the test."""
    wrong, contexts = [], []

    def visit(width=1280, height=900, **options):
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        context.set_default_timeout(90_000)
        contexts.append(context)
        opened = context.new_page()
        opened.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
        opened.on("pageerror", lambda error: wrong.append(str(error)))
        opened.on("request", lambda r: wrong.append(r.url) if not r.url.startswith(("file:", "data:", "blob:")) else None)
        opened.goto(report)
        opened.locator("#figure-job .graph").scroll_into_view_if_needed()
        opened.wait_for_selector("#figure-job .graph .trace")
        return opened

    yield visit
    for context in contexts:
        context.close()
    assert wrong == []


def job(opened):
    return opened.locator("#figure-job")


def swatches(opened):
    return opened.eval_on_selector_all(
        "#figure-job .legend line", "lines => lines.map(line => line.getAttribute('stroke-dasharray'))"
    )


def paths(opened):
    return opened.eval_on_selector_all("#figure-job .graph path.js-line", "lines => lines.map(line => line.getAttribute('d'))")


def axis(opened, which):
    return opened.locator(f"#figure-job .{which}title").text_content()


def test_controls_change_the_plot(visit):
    opened = visit()
    before = paths(opened)
    assert axis(opened, "y") == "distance ‖x − x*‖"
    job(opened).get_by_label("Vertical", exact=True).select_option("loss")
    assert axis(opened, "y") == "loss f(x)"
    assert paths(opened) != before
    linear = paths(opened)
    job(opened).get_by_label("Vertical scale").select_option("linear")
    assert paths(opened) != linear
    job(opened).get_by_label("Horizontal", exact=True).select_option("wire_bits_up")
    assert axis(opened, "x") == f"{column_of('wire_bits_up').label} [bit]"


def test_the_legend_shows_how_lines_are_drawn(visit):
    """Beside the column of bounds, which are dashed, lines are solid; elsewhere dashes tell them apart."""
    opened = visit()
    assert "Thin, dashed" in job(opened).locator(".legend").text_content()
    assert set(swatches(opened)) == {""}
    job(opened).get_by_label("Vertical", exact=True).select_option("loss")
    assert "Thin, dashed" not in job(opened).locator(".legend").text_content()
    assert len(set(swatches(opened))) == 3


def test_a_line_is_taken_away_and_brought_back_by_the_keyboard(visit):
    opened = visit()
    before = len(paths(opened))
    box = job(opened).get_by_role("checkbox", name="IADE")
    box.focus()
    opened.keyboard.press("Space")
    assert len(paths(opened)) == before - 2  # it, and its bound
    opened.keyboard.press("Space")
    assert len(paths(opened)) == before


def test_seeds_are_a_band_and_bounds_a_line(visit):
    opened = visit()
    assert job(opened).locator(".graph .fills path").count() == 1  # only the minibatches differ
    assert job(opened).locator(".legend").text_content().count("(2 seeds)") == 3


def test_hovering_shows_the_values(visit):
    opened = visit()
    marker = job(opened).locator(".graph .trace .points path").nth(20).bounding_box()
    opened.mouse.move(marker["x"] + marker["width"] / 2, marker["y"] + marker["height"] / 2)
    assert "round: " in job(opened).locator(".hovertext").first.text_content()


def test_it_is_downloaded_as_png(visit, tmp_path):
    opened = visit()
    with opened.expect_download() as download:
        job(opened).get_by_role("button", name="Download this plot as PNG").click()
    download.value.save_as(tmp_path / "plot.png")
    assert download.value.suggested_filename == "figure-job.png"
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "plot.png").stat().st_size > 10_000


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault(visit, scheme):
    opened = visit(color_scheme=scheme)
    opened.eval_on_selector_all("details", "all => all.forEach(each => each.open = true)")
    found = axe.Axe().run(opened).response["violations"]
    assert [(v["id"], v["nodes"][0]["html"]) for v in found if v["impact"] in ("serious", "critical")] == []


@pytest.mark.parametrize("width", [320, 390, 768, 1440])
def test_nothing_is_wider_than_the_screen(visit, width):
    opened = visit(width, 844)
    opened.eval_on_selector_all("details", "all => all.forEach(each => each.open = true)")
    assert opened.evaluate("document.documentElement.scrollWidth") <= width


def test_claims_are_filtered(visit):
    opened = visit()
    row = opened.locator(".claims tr.fails").first
    assert row.is_visible()
    opened.get_by_role("checkbox", name="do not hold").uncheck()
    assert not row.is_visible()


def test_it_prints_on_white_with_every_plot(visit):
    opened = visit(height=100, color_scheme="dark")
    opened.emulate_media(media="print", color_scheme="dark")
    assert opened.locator("#figure-below .graph .trace").count() == 0  # it has not come into view
    assert opened.pdf().startswith(b"%PDF")
    assert opened.locator("#figure-below .graph .trace").count() > 0
    assert opened.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert job(opened).locator(".reach td.live").first.is_visible()
    assert not job(opened).get_by_role("slider").is_visible()


def texts(opened, table):
    """The table of targets: heads, and by method and job its cells as text."""
    heads = opened.eval_on_selector_all(f"{table} thead th", "all => all.map(each => each.textContent)")
    rows = opened.eval_on_selector_all(f"{table} tbody tr", "all => all.map(row => [...row.cells].map(cell => cell.textContent))")
    return heads, {row[0]: row[1:] for row in rows}


def test_the_slider_is_reached_and_moved_by_the_keyboard_and_has_the_numbers_of_the_command(visit, found):
    opened = visit(1440)
    level = opened.locator("#figure-job .reach output")
    for _ in range(200):
        opened.keyboard.press("Tab")
        if opened.evaluate("document.activeElement.id") == "figure-job-reach-level":
            break
    assert opened.evaluate("document.activeElement.id") == "figure-job-reach-level"
    seen = set()
    for key in ("Home", "ArrowRight", "ArrowRight", "PageUp", "PageUp", "PageUp", "PageUp", "PageUp", "ArrowLeft", "End"):
        opened.keyboard.press(key)
        seen.add(level.text_content())
        assert opened.evaluate("document.activeElement.getAttribute('aria-valuetext')") == level.text_content()
        heads, rows = texts(opened, "#figure-job .reach")
        targets = [Target.of(*typed(head.replace("≤", "=").replace(" ", ""))) for head in heads[1:]]
        assert level.text_content() == heads[1]
        wanted = compare(found[0].runs, targets, "round")
        assert {name: cells for name, *cells in wanted.cells} == rows
        medians = {method.label: method.cells[0].median for method in wanted.methods}
        assert [medians[name] for name in rows] == sorted(medians.values())
    assert len(seen) > 7


def test_the_targets_column_and_what_is_counted_are_chosen(visit, found):
    opened = visit()
    place = job(opened).locator(".reach")
    place.get_by_label("Target of").select_option("loss f(x)")
    for by in ("wire_bits_up", "cost_up", "seconds"):
        label = column_of(by).label
        place.get_by_label("Counted in").select_option(label)
        assert place.locator(".caption").text_content().startswith(label)
        heads, rows = texts(opened, "#figure-job .reach")
        targets = [Target.of(*typed(head.replace("≤", "=").replace(" ", ""))) for head in heads[1:]]
        assert {name: cells for name, *cells in compare(found[0].runs, targets, by).cells} == rows


def test_methods_of_both_jobs_are_in_the_table_across_jobs(visit):
    opened = visit()
    heads, rows = texts(opened, "#data-1 .reach")
    assert heads[:2] == ["Method", "Job"]
    assert len(opened.query_selector_all("#data-1 tbody tr")) == 6
    assert {cells[0] for cells in rows.values()} <= {"job", "below"}
    assert opened.locator("#figure-job-h").text_content().endswith("job")


def test_without_scripts_the_fixed_targets_are_there(browser, report):
    context = browser.new_context(java_script_enabled=False, viewport={"width": 390, "height": 844})
    context.set_default_timeout(90_000)
    opened = context.new_page()
    opened.goto(report)
    assert opened.locator("#figure-job .reach tbody td").first.is_visible()
    assert not opened.locator("#figure-job .reach .controls").is_visible()
    assert opened.locator("#what-ran tbody .verdict").first.is_visible()
    context.close()


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (390, 844)])
def test_what_ran_is_the_first_screen(visit, width, height):
    opened = visit(width, height)
    opened.evaluate("window.scrollTo(0, 0)")
    for name in ("h1", "#what-ran .says", "#what-ran tbody .verdict >> nth=0"):
        box = opened.locator(name).bounding_box()
        assert box["y"] + box["height"] < height
