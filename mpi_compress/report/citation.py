"""What a citation of an archive needs, CITATION.cff and DataCite's fields, and what would be sent to publish it."""

import datetime
import hashlib
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
    def files(self) -> dict[str, str]:
        """CITATION.cff and datacite.json."""
        authors = [each | ({"orcid": f"https://orcid.org/{each['orcid']}"} if "orcid" in each else {}) for each in self.creators]
        cff = {
            "cff-version": "1.2.0", "message": "If you use these results, please cite them.", "type": "dataset",
            "title": self.title, "authors": authors, "license": self.licence, "version": self.version, "date-released": self.date,
        }  # fmt: skip
        ids = [{"nameIdentifierScheme": "ORCID", "nameIdentifier": each.get("orcid", "")} for each in authors]
        datacite = {
            "creators": [{"name": a["name"], "nameIdentifiers": [i] * ("orcid" in a)} for a, i in zip(authors, ids, strict=True)],
            "titles": [{"title": self.title}], "publisher": {"name": "Zenodo"}, "publicationYear": int(self.date[:4]),
            "types": {"resourceTypeGeneral": "Dataset", "resourceType": "results of runs"}, "version": self.version,
            "rightsList": [{"rightsIdentifier": self.licence, "rightsIdentifierScheme": "SPDX"}],
            "descriptions": [{"description": self.description or self.title, "descriptionType": "Abstract"}],
        }  # fmt: skip
        lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in cff.items()]  # JSON is YAML
        return {"CITATION.cff": "".join(lines), "datacite.json": _text(datacite)}

    def requests(self, archive: Path, to: str) -> str:
        """What would be sent, one request after the other, to publish it on "zenodo", or as a release of a git "forge"."""
        upload = {"file": str(archive), "sha256": hashlib.sha256(archive.read_bytes()).hexdigest()}
        if to == "forge":
            release = {"tag_name": f"{archive.stem}-{self.version}", "name": self.title, "body": self.description, "draft": True}
            create = {"POST": "/repos/{owner}/{repository}/releases", "json": release}
            return _text([create, {"POST": f"{{upload_url}}?name={archive.name}", **upload}])
        metadata = {
            "title": self.title, "upload_type": "dataset", "description": self.description or self.title, "creators": self.creators,
            "license": self.licence.lower(), "version": self.version, "publication_date": self.date,
        }  # fmt: skip
        create = {"POST": "/api/deposit/depositions", "json": {"metadata": metadata}}
        publish = {"POST": "/api/deposit/depositions/{id}/actions/publish"}
        return _text([create, {"PUT": f"{{bucket}}/{archive.name}", **upload}, publish])


def about_of(file: Path) -> About:
    """What a file says of an archive; UserError with the place in it."""
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{file}: cannot be read: {error}") from None
    with placed(f"{file}: "):
        return checked(About, {k: str(v) if isinstance(v, datetime.date) else v for k, v in tables.items()}, "about")


def _text(tables: Any) -> str:
    return json.dumps(tables, indent=2, ensure_ascii=False) + "\n"
