"""Sets that jobs name: their published shapes, their files in the LIBSVM collection, and sets for networks."""

from pathlib import Path
from typing import NamedTuple

from mpi_compress.problem.datasets.libsvm import SUFFIXES, stem


class LibsvmSet(NamedTuple):
    """N samples and d features as published; None for a set that is a part of another, of no fixed size."""

    samples: int | None
    dim: int
    files: tuple[str, ...] = ()  # in the collection; several are joined in this order
    nonzeros: int | None = None  # values that are not 0
    classes: int = 2  # different labels

    def mismatch(self, samples: int, largest_index: int, nonzeros: int = 0) -> str | None:
        """The first difference between a file and what is published; a test set may lack the last features of its training set."""
        if self.samples is not None and samples != self.samples:
            return f"N = {samples}, and N = {self.samples} is published"
        if largest_index > self.dim or (self.nonzeros is not None and largest_index < self.dim):
            return f"d = {largest_index}, and d = {self.dim} is published"
        if nonzeros and self.nonzeros not in (None, nonzeros):
            return f"{nonzeros} nonzeros, and {self.nonzeros} are published"
        return None

    def differs(self, samples: int, dim: int, labels: int = 0, nonzeros: int = 0) -> str:
        """That data of this size, with so many different labels and nonzeros (0: not known), are not what is published; or ""."""
        other = f" of {self.classes} labels" if labels not in (0, self.classes) else ""
        if not self.mismatch(samples, dim) and self.mismatch(samples, dim, nonzeros):
            other += f" with {self.nonzeros} nonzeros, here {nonzeros}"
        differs = other or self.mismatch(samples, dim)
        return f"differs from the published {self.samples or samples} × {self.dim}{other}" if differs else ""


KNOWN = {
    "a1a": LibsvmSet(1605, 123, ("a1a",)),
    "a5a": LibsvmSet(6414, 123, ("a5a",)),
    "a9a": LibsvmSet(32561, 123, ("a9a",), nonzeros=451592),
    "a9a.t": LibsvmSet(16281, 123, ("a9a.t",)),
    "census-income": LibsvmSet(199_523, 510, nonzeros=7_031_753),
    "covtype": LibsvmSet(581012, 54, ("covtype.libsvm.binary.bz2",), nonzeros=6_940_438),
    "gisette": LibsvmSet(6000, 5000, ("gisette_scale.bz2",), nonzeros=29_729_997),
    "gisette.t": LibsvmSet(1000, 5000, ("gisette_scale.t.bz2",)),
    "ijcnn1": LibsvmSet(49990, 22, ("ijcnn1.bz2",)),
    "ijcnn1.val": LibsvmSet(14990, 22, nonzeros=194_870),
    "madelon": LibsvmSet(2000, 500, ("madelon",), nonzeros=999_999),
    "madelon.t": LibsvmSet(600, 500, ("madelon.t",)),
    "mushrooms": LibsvmSet(8124, 112, ("mushrooms",), nonzeros=170_604),
    "news20": LibsvmSet(15935, 62061, classes=20),
    "news20.binary": LibsvmSet(19996, 1355191, ("news20.binary.bz2",), nonzeros=9_097_916),
    "phishing": LibsvmSet(11055, 68, ("phishing",), nonzeros=331_610),
    "rcv1": LibsvmSet(697641, 47236, ("rcv1_train.binary.bz2", "rcv1_test.binary.bz2"), nonzeros=51_055_210),
    "rcv1_vw1000": LibsvmSet(None, 47236),
    "real-sim": LibsvmSet(72309, 20958, ("real-sim.bz2",), nonzeros=3_709_083),
    "sector.scale": LibsvmSet(6412, 55197, classes=105),
    "url": LibsvmSet(2396130, 3231961, ("url_combined.bz2",), nonzeros=277_058_644),
    "url_Day45": LibsvmSet(None, 3231961),
    "url_sub2000": LibsvmSet(None, 3231961),
    "w1a": LibsvmSet(2477, 300, ("w1a",)),
    "w8a": LibsvmSet(49749, 300, ("w8a",), nonzeros=579_586),
    "w8a.t": LibsvmSet(14951, 300, ("w8a.t",)),
}


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
_JPEG = "cifar-10-jpeg"
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
    "cifar-10-jpeg": Published("cifar-10", (f"{_JPEG}/data_batch_1.bin",), "10,000 images, JPEG copies of CIFAR-10's"),
    "cifar-10-jpeg.t": Published("cifar-10", (f"{_JPEG}/test_batch.bin",), "2,000 images, JPEG copies of CIFAR-10's"),
    "fashion-mnist": Published("idx", tuple(f"train-{f}" for f in _IDX), "60,000 images", _FASHION, _FASHION_DIGESTS),
    "fashion-mnist.t": Published("idx", tuple(f"t10k-{f}" for f in _IDX), "10,000 images", _FASHION, _FASHION_TEST_DIGESTS),
    "movielens-20m": Published("movielens", ("ml-20m/ratings.csv",), "20,000,263 ratings", _ML, _ML_DIGEST),
    "movielens-small": Published("movielens", ("movielens-small-ratings.csv",), "100,004 ratings"),
    "wikitext-2": Published("text", ("wikitext-2-raw/wiki.train.raw",), "2,051,910 words", _WIKI, _WIKI_DIGEST),
    "wikitext-2.t": Published("text", ("wikitext-2-raw/wiki.test.raw",), "241,211 words", _WIKI, _WIKI_DIGEST),
}


def names_of(name: str) -> list[str]:
    """The names, without suffixes, under which a set's file is looked for: its own, and those of its files in the collection."""
    return list(dict.fromkeys([name, *(stem(file) for file in (KNOWN[name].files if name in KNOWN else ()))]))


def published_of(name: str) -> LibsvmSet | None:
    """What is published of the set that a name, or a file's name, means; None if that is no known set."""
    name = stem(name)
    return KNOWN.get(name) or next((known for known in KNOWN.values() if [stem(file) for file in known.files] == [name]), None)


def how_to_get(name: str | None) -> str:
    """The command that fetches a set; "" where there is none."""
    gettable = (name in KNOWN and KNOWN[name].files) or (name in PUBLISHED and PUBLISHED[name].source)
    return f"mpi-compress data get {name}" if gettable else ""


def find_published(name: str, places: list[Path]) -> Path | None:
    """The file to read of a set, in a place or in its folder `deep`, plain or compressed; None: nowhere."""
    for place in places:
        for folder in (place, place / "deep"):
            for suffix in SUFFIXES:
                if (found := folder / f"{PUBLISHED[name].files[0]}{suffix}").is_file():
                    return found
    return None
