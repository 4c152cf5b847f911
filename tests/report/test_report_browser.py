"""The page in a real browser: it opens without errors, asks nothing of the network, its controls work, and anyone can use it."""

import os
import shutil

import pytest

import mpi_compress as mc
from mpi_compress import report as pages
from mpi_compress.job.loading import load_job

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
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    files = [folder / "job.toml", folder / "below.toml"]
    for file in files:
        file.write_text(JOB)
        mc.run(load_job(file), out=folder)
    pages.write(pages.outcomes(files, folder), folder / "report.html")
    return (folder / "report.html").as_uri()


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
        opened.locator("#figure-job").scroll_into_view_if_needed()
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
    assert axis(opened, "x") == "bits sent up, on the wire [bit]"


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


@pytest.mark.parametrize("width", [320, 390, 768])
def test_nothing_is_wider_than_a_phone(visit, width):
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
