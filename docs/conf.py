"""How `make docs` builds these pages, with Sphinx."""

import sys
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import generated_pages  # noqa: E402

project = "mpi_compress"
version = release = metadata.version("mpi-compress")
myst_enable_extensions = ["deflist"]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "mpi_compress"
html_static_path, html_css_files = ["site.css"], ["site.css"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"

generated_pages.write(HERE / "generated")

FORMER = {
    "which-method": "fair-comparison.html#which-method-should-i-try-first", "peers": "fair-comparison.html#other-programs",
    "own-split": "own-data.html#a-partition-of-your-own", "own-model": "own-loss.html#a-model-of-your-own",
    "own-cost-model": "own-loss.html#a-cost-model-of-your-own", "parts-alone": "from-python.html#compressors-without-experiments",
    "pictures": "results.html#figures-on-a-screen-and-in-a-paper", "report": "results.html#the-report-all-of-it-on-one-page",
    "what-it-sends": "bits.html#what-does-my-compressor-send", "bit-audit": "bits.html#does-the-winner-depend-on-who-counts",
    "deep-bits": "bits.html#what-programs-for-networks-count", "links": "reproduces.html#cat-on-links-that-were-measured",
    "stand-ins": "reproduces.html#other-data-than-the-papers", "not-reproduced": "reproduces.html",
    "literature": "reproduces.html#the-literature-s-comparisons", "releasing": "contributing.html#releasing-a-version",
    "theorem": "own-algorithm.html#does-your-method-follow-its-theorem", "python": "from-python.html#every-name",
    "architecture": "contributing.html#architecture", "speed": "contributing.html#speed", "glossary": "maths.html#glossary",
    "troubleshooting": "install.html#when-something-fails", "gallery": "figures.html", "gallery-deep": "figures-deep.html",
}  # fmt: skip
"""Addresses that pages had, and where their text is."""


def redirect(app, exception) -> None:
    if exception is None and app.builder.name == "html":
        for name, target in FORMER.items():
            page = f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={target}"><a href="{target}">{target}</a>\n'
            Path(app.outdir, f"{name}.html").write_text(page, encoding="utf-8")


def setup(app) -> None:
    app.connect("build-finished", redirect)
