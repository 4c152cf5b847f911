"""Sets for networks that jobs name: their files as published, their formats, and where they can be fetched."""

import hashlib
import tarfile
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

from mpi_compress.core.errors import UserError
from mpi_compress.problem.datasets import libsvm
from mpi_compress.problem.datasets.cache import replace


class Published(NamedTuple):
    """A set: `files[0]` is what is read; others lie beside it."""

    format: str
    files: tuple[str, ...]  # paths as the archive has them
    size: str  # for people
    source: str = ""  # the address of an archive, or of a folder with the files as .gz; "" where there is none
    digests: tuple[str, ...] = ()  # as published, of the archive or of each file: algorithm:digest


_FASHION = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
_FASHION_DIGESTS = ("md5:8d4fb7e6c68d591d4c3dfef9ec88bf0d", "md5:25c81989df183df01b3e8a0aad5dffbe")
_FASHION_TEST_DIGESTS = ("md5:bef4ecab320f06d8554ea6380940ec79", "md5:bb300cfdad3c16e7a12a480ee83cd310")
_BATCHES = "cifar-10-batches-bin"
_CIFAR = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
_CIFAR_DIGEST = ("md5:c32a1d4ab5d03f1284b67883e8d87530",)
_WIKI = "https://huggingface.co/datasets/ggml-org/ci/resolve/main/wikitext-2-raw-v1.zip"
_WIKI_DIGEST = ("sha256:ef7edb566e3e2b2d31b29c1fdb0c89a4cc683597484c3dc2517919c615435a11",)
_ML = "https://files.grouplens.org/datasets/movielens/ml-20m.zip"
_ML_DIGEST = ("md5:cd245b17a1ae2cc31bb14903e1204af3",)

_TRAINING = tuple(f"{_BATCHES}/data_batch_{i}.bin" for i in range(1, 6))
_IDX = ("images-idx3-ubyte", "labels-idx1-ubyte")

PUBLISHED = {
    "austen": Published("text", ("austen.txt",), "717,537 words"),
    "cifar-10": Published("cifar-10", _TRAINING, "50,000 images", _CIFAR, _CIFAR_DIGEST),
    "cifar-10.t": Published("cifar-10", (f"{_BATCHES}/test_batch.bin",), "10,000 images", _CIFAR, _CIFAR_DIGEST),
    "fashion-mnist": Published("idx", tuple(f"train-{f}" for f in _IDX), "60,000 images", _FASHION, _FASHION_DIGESTS),
    "fashion-mnist.t": Published("idx", tuple(f"t10k-{f}" for f in _IDX), "10,000 images", _FASHION, _FASHION_TEST_DIGESTS),
    "movielens-20m": Published("movielens", ("ml-20m/ratings.csv",), "20,000,263 ratings", _ML, _ML_DIGEST),
    "movielens-small": Published("movielens", ("movielens-small-ratings.csv",), "100,004 ratings"),
    "wikitext-2": Published("text", ("wikitext-2-raw/wiki.train.raw",), "2,051,910 words", _WIKI, _WIKI_DIGEST),
    "wikitext-2.t": Published("text", ("wikitext-2-raw/wiki.test.raw",), "241,211 words", _WIKI, _WIKI_DIGEST),
}


def find_published(name: str, places: list[Path]) -> Path | None:
    """The file to read of a set, in a place or in its folder `deep`, plain or compressed; None: nowhere."""
    for place in places:
        for folder in (place, place / "deep"):
            for suffix in libsvm.SUFFIXES:
                if (found := folder / f"{PUBLISHED[name].files[0]}{suffix}").is_file():
                    return found
    return None


def is_digest_of(file: Path, digest: str) -> bool:
    """True if a file has this digest, algorithm:digest."""
    algorithm, _, wanted = digest.partition(":")
    with file.open("rb") as content:
        return hashlib.file_digest(content, algorithm).hexdigest() == wanted


def unpack(file: Path, members: list[str], folder: Path) -> None:
    """Write members of a .zip or .tar.gz below a folder, by their paths in the archive; any other file becomes the one member.

    Raises:
        UserError: the archive is damaged, or lacks a member.
    """
    try:
        if file.suffix == ".zip":
            with zipfile.ZipFile(file) as archive:
                for member in members:
                    _write(folder / member, archive.open(member))
        elif file.name.endswith(".tar.gz"):
            with tarfile.open(file) as tar:
                for member in members:
                    _write(folder / member, tar.extractfile(member))
        else:
            _write(folder / members[0], file.open("rb"))
    except (zipfile.BadZipFile, tarfile.TarError, KeyError, OSError) as error:
        raise UserError(f"{file}: cannot be unpacked: {error}") from None


def _write(target: Path, source: Any) -> None:
    with source:
        replace(target, lambda part: part.write_bytes(source.read()))
