"""Sets for networks that jobs name: their files as published, their formats, and where they can be fetched."""

from pathlib import Path
from typing import NamedTuple

from mpi_compress.problem.datasets import libsvm


class Published(NamedTuple):
    """A set: `files[0]` is what is read; others lie beside it."""

    format: str
    files: tuple[str, ...]  # paths as the archive has them
    size: str  # for people
    source: str = ""  # the address of an archive, or of a folder with the files as .gz; "" where there is none


_FASHION = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
_BATCHES = "cifar-10-batches-bin"
_CIFAR = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
_WIKI = "https://wikitext.smerity.com/wikitext-2-raw-v1.zip"
_ML = "https://files.grouplens.org/datasets/movielens/"

PUBLISHED = {
    "austen": Published("text", ("austen.txt",), "717,537 words"),
    "cifar-10": Published("cifar-10", tuple(f"{_BATCHES}/data_batch_{i}.bin" for i in range(1, 6)), "50,000 images", _CIFAR),
    "cifar-10.t": Published("cifar-10", (f"{_BATCHES}/test_batch.bin",), "10,000 images", _CIFAR),
    "fashion-mnist": Published("idx", ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"), "60,000 images", _FASHION),
    "fashion-mnist.t": Published("idx", ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"), "10,000 images", _FASHION),
    "movielens-20m": Published("movielens", ("ml-20m/ratings.csv",), "20,000,263 ratings", f"{_ML}ml-20m.zip"),
    "movielens-small": Published("movielens", ("movielens-small-ratings.csv",), "100,004 ratings"),
    "wikitext-2": Published("text", ("wikitext-2-raw/wiki.train.raw",), "2,051,910 words", _WIKI),
    "wikitext-2.t": Published("text", ("wikitext-2-raw/wiki.test.raw",), "241,211 words", _WIKI),
}


def find_published(name: str, places: list[Path]) -> Path | None:
    """The file to read of a set, in a place or in its folder `deep`, plain or compressed; None: nowhere."""
    for place in places:
        for folder in (place, place / "deep"):
            for suffix in libsvm.SUFFIXES:
                if (found := folder / f"{PUBLISHED[name].files[0]}{suffix}").is_file():
                    return found
    return None
