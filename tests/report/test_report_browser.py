"""The page in a real browser: it opens without errors, asks nothing of the network, its controls work, and anyone can use it."""

import os
import shutil

import pytest

import mpi_compress as mc
from mpi_compress.evidence.outcomes import outcomes
from mpi_compress.job.loading import load_job
from mpi_compress.report import render
from mpi_compress.results.columns import column_of

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
basis = "paper"
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
    return outcomes(files, folder)


@pytest.fixture(scope="module")
def report(found):
    file = found[0].file.with_name("report.html")
    render.write(found, file)
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
        opened.wait_for_selector("#figure-job .graph canvas")
        return opened

    yield visit
    for context in contexts:
        context.close()
    assert wrong == []


def job(opened):
    return opened.locator("#figure-job")


def pixels(opened):
    """The plot as it is drawn."""
    return opened.eval_on_selector("#figure-job .graph canvas", "canvas => canvas.toDataURL()")


def values(opened):
    return opened.eval_on_selector_all("#figure-job .legend output", "all => all.map(each => each.textContent)")


def hover(opened, share):
    """Move the pointer to this share of the plot's width."""
    box = job(opened).locator(".u-over").bounding_box()
    opened.mouse.move(box["x"] + share * box["width"], box["y"] + box["height"] / 2)


def test_axes_and_scales_are_chosen(visit):
    opened = visit()
    graph, seen = job(opened).locator(".graph"), [pixels(opened)]
    assert graph.get_attribute("aria-label").startswith("distance ‖x − x*‖ against round")
    for label, choice in (("Horizontal", "wire_bits_up"), ("Horizontal scale", "log"), ("Vertical scale", "linear")):
        job(opened).get_by_label(label, exact=True).select_option(choice)
        seen.append(pixels(opened))
    assert len(set(seen)) == 4
    assert f"against {column_of('wire_bits_up').whole_label} [bit]" in graph.get_attribute("aria-label")
    assert opened.eval_on_selector_all("#figure-job-x option", "all => all.map(each => each.value)")[:3] == ["round", "wire_bits_up", "wire_bits"]


def test_a_line_is_taken_away_and_brought_back_by_the_keyboard(visit):
    opened = visit()
    before = pixels(opened)
    box = job(opened).get_by_role("checkbox", name="IADE")
    box.focus()
    opened.keyboard.press("Space")
    assert pixels(opened) != before
    assert "2 lines" in job(opened).locator(".graph").get_attribute("aria-label")
    opened.keyboard.press("Space")
    assert pixels(opened) == before


def test_hovering_shows_the_values_of_all_lines(visit):
    opened = visit()
    assert values(opened) == ["", "", ""]
    hover(opened, 0.02)
    early = [float(value) for value in values(opened)]
    hover(opened, 0.98)
    late = [float(value) for value in values(opened)]
    assert all(a > b for a, b in zip(early, late, strict=True))
    assert job(opened).locator(".at").text_content().startswith("round: ")


def test_the_figure_is_drawn_again_where_the_window_or_its_colours_change(visit):
    opened = visit()
    light = pixels(opened)
    opened.emulate_media(color_scheme="dark")
    opened.wait_for_function("before => document.querySelector('#figure-job .graph canvas').toDataURL() !== before", arg=light)
    opened.set_viewport_size({"width": 600, "height": 900})
    opened.wait_for_function("document.querySelector('#figure-job .graph canvas').getBoundingClientRect().width < 600")


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


def test_it_prints_on_white_with_the_jobs_figures(visit):
    opened = visit(height=100, color_scheme="dark")
    opened.emulate_media(media="print", color_scheme="dark")
    assert opened.pdf().startswith(b"%PDF")
    assert opened.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert opened.locator("#figure-below .picture").is_visible()
    assert not job(opened).locator(".explorer").is_visible()


def test_without_scripts_the_figure_who_won_and_the_tables_are_there(browser, report):
    context = browser.new_context(java_script_enabled=False, viewport={"width": 390, "height": 844})
    context.set_default_timeout(90_000)
    opened = context.new_page()
    opened.goto(report)
    assert opened.locator("#figure-job .won").is_visible()
    assert opened.eval_on_selector("#figure-job .picture", "image => image.naturalWidth") > 300
    assert opened.locator("#figure-job .needed tbody td").first.is_visible()
    assert not opened.locator("#figure-job .explorer").is_visible()
    assert opened.locator("#what-ran tbody .verdict").first.is_visible()
    context.close()


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (390, 844)])
def test_who_won_and_the_figure_are_the_first_screen_of_a_job(found, browser, width, height, tmp_path):
    render.write(found[:1], tmp_path / "one.html")
    context = browser.new_context(viewport={"width": width, "height": height})
    opened = context.new_page()
    opened.goto((tmp_path / "one.html").as_uri())
    tops = [opened.locator(name).bounding_box()["y"] for name in ("h1", ".says", ".won", ".picture")]
    assert tops == sorted(tops)
    assert tops[-1] < height
    context.close()


def test_a_line_that_the_axes_cannot_show_is_not_ticked_and_says_why(browser, tmp_path):
    """That of another cost model, and of sending the data, which starts at 0 bits and ends at f − f* = 0; a choice is kept for axes
    that show the line again."""
    (tmp_path / "axes.toml").write_text("""
title = "axes"
data = { generator = "least-squares", samples = 20, dim = 4 }
objective = { loss = "least-squares", mu = "1e-2 L" }
workers.count = 2
stop.rounds = 10
figure = { x = "cost_up", y = "suboptimality", xscale = "linear", yscale = "linear" }
[[run]]
label = "GD"
algorithm.name = "gd"
[[run]]
label = "GD, packets"
algorithm.name = "gd"
cost = { model = "packet", c1 = "8 B", c0 = "8 B", pmax = "8 B" }
[[run]]
label = "sending the data"
algorithm.name = "ship-data"
[[run]]
label = "half as fast"
algorithm = { name = "gd", step = "0.5/L" }
""")
    mc.run(tmp_path / "axes.toml", out=tmp_path, quiet=True)
    render.write(outcomes([tmp_path / "axes.toml"], tmp_path), tmp_path / "axes.html")
    context = browser.new_context()
    context.set_default_timeout(90_000)
    opened = context.new_page()
    opened.goto((tmp_path / "axes.html").as_uri())
    boxes = opened.locator(".legend label")
    boxes.first.scroll_into_view_if_needed()
    opened.wait_for_selector(".graph canvas")

    def shown():
        """Of each line whether its box is ticked, or why it cannot be."""
        each = [boxes.nth(i) for i in range(4)]
        assert all(box.locator("input").is_disabled() == bool(box.locator("small").text_content()) for box in each)
        return [box.locator("small").text_content() or box.locator("input").is_checked() for box in each]

    def choose(axis, value):
        opened.get_by_label(axis, exact=True).select_option(value)

    other, zero = (f"no value on {why}" for why in ("this axis: the cost of another model", "these axes: 0 on a logarithmic axis"))
    assert shown() == [True, other, True, True]
    assert "3 lines: GD; sending the data; half as fast." in opened.locator(".graph").get_attribute("aria-label")
    boxes.nth(3).locator("input").uncheck()
    opened.get_by_role("button", name="All or none").click()
    assert shown() == [True, other, True, True]
    opened.get_by_role("button", name="All or none").click()
    assert shown() == [False, other, False, False]
    boxes.nth(2).locator("input").check()
    choose("Horizontal", "wire_bits_up")
    assert shown() == [False, True, True, False]
    choose("Horizontal scale", "log")
    choose("Vertical scale", "log")
    assert shown() == [False, True, zero, False]
    choose("Horizontal scale", "linear")
    assert shown() == [False, True, True, False]
    context.close()
