"""How `make docs` builds these pages, with Sphinx."""

import subprocess
import sys
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).parent

project = "mpi_compress"
version = release = metadata.version("mpi-compress")
myst_enable_extensions = ["deflist"]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "mpi_compress"
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "description"

listed = subprocess.run([sys.executable, "-m", "mpi_compress", "list"], capture_output=True, text=True, check=True).stdout
(HERE / "_parts.txt").write_text(listed)
