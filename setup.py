"""What setup.cfg cannot say: jobs/ and docs/ are in the package, and its long description is README without links to files."""

import re
from collections.abc import Iterator
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent
SHIPPED = {"jobs": ("*.toml",), "docs": ("*.md", "*.csv", "*.ipynb")}
"""Folders of the top level that an installed package has inside; `mpi_compress.core.shipped` finds them in either place."""

IMAGE = re.compile(r"!\[[^]]*\]\((?!https?:)[^)]*\)\n*")
LINK = re.compile(r"\[([^]]*)\]\((?!https?:|#)[^)]*\)")


class BuildWithFolders(build_py):
    """Copies the shipped folders into the package; an editable installation finds them in the checkout."""

    def run(self) -> None:
        super().run()
        for source, target in () if self.editable_mode else self._shipped():
            self.mkpath(str(target.parent))
            self.copy_file(str(source), str(target))

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        return [*super().get_outputs(include_bytecode), *(str(target) for _, target in self._shipped() if not self.editable_mode)]

    def _shipped(self) -> Iterator[tuple[Path, Path]]:
        for folder, patterns in SHIPPED.items():
            for source in sorted(file for pattern in patterns for file in (HERE / folder).rglob(pattern)):
                if "_build" not in source.parts:
                    yield source, Path(self.build_lib, "mpi_compress", source.relative_to(HERE))


def long_description() -> str:
    """README as a package index shows it: no picture and no link to files that are not there."""
    return LINK.sub(r"\1", IMAGE.sub("", (HERE / "README.md").read_text(encoding="utf-8")))


if __name__ == "__main__":
    setup(cmdclass={"build_py": BuildWithFolders}, long_description=long_description())
