"""CITATION.cff of an archive, from a file that says who made it."""

import datetime
import json
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mpi_compress.core.errors import UserError, placed
from mpi_compress.core.registry import checked


@dataclass(frozen=True)
class About:
    """What a file such as about.toml says of an archive."""

    title: str
    creators: list[dict[str, str]]  # each a name, and perhaps an orcid and an affiliation
    licence: str  # an identifier of SPDX, such as CC-BY-4.0
    description: str = ""
    version: str = "1"
    date: str = field(default_factory=lambda: datetime.date.today().isoformat())  # of publication

    def __post_init__(self) -> None:
        if not self.creators or not all("name" in each and {*each} <= {"name", "orcid", "affiliation"} for each in self.creators):
            raise ValueError("creators: [[creators]] with a name, and perhaps an orcid and an affiliation, are required")

    @property
    def cff(self) -> str:
        """CITATION.cff, of the Citation File Format 1.2."""
        authors = [each | ({"orcid": f"https://orcid.org/{each['orcid']}"} if "orcid" in each else {}) for each in self.creators]
        keys: dict[str, Any] = {
            "cff-version": "1.2.0", "message": "If you use these results, please cite them.", "type": "dataset",
            "title": self.title, "authors": authors, "license": self.licence, "version": self.version, "date-released": self.date,
        }  # fmt: skip
        keys |= {"abstract": self.description} if self.description else {}
        return "".join(f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in keys.items())  # JSON is YAML


def about_of(file: Path) -> About:
    """What a file says of an archive; UserError with the place in it."""
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise UserError(f"{file}: cannot be read: {error}") from None
    with placed(f"{file}: "):
        return checked(About, {k: str(v) if isinstance(v, datetime.date) else v for k, v in tables.items()}, "about")
