"""Sets that jobs name: their published shapes, and the files of the LIBSVM collection that they are."""

from typing import NamedTuple

from mpi_compress.problem.datasets.published import PUBLISHED


class Known(NamedTuple):
    """N samples and d features as published; None for a set that is a part of another, of no fixed size."""

    samples: int | None
    dim: int
    files: tuple[str, ...] = ()  # in the collection; several are joined in this order
    nonzeros: int | None = None  # rounded in some, to estimate the size

    def mismatch(self, samples: int, largest_index: int) -> str | None:
        """The first difference between a file and what is published; a test set may lack the last features of its training set."""
        if self.samples is not None and samples != self.samples:
            return f"N = {samples}, and N = {self.samples} is published"
        if largest_index > self.dim or (self.nonzeros is not None and largest_index < self.dim):
            return f"d = {largest_index}, and d = {self.dim} is published"
        return None


KNOWN = {
    "a1a": Known(1605, 123, ("a1a",)),
    "a5a": Known(6414, 123, ("a5a",)),
    "a9a": Known(32561, 123, ("a9a",), nonzeros=451592),
    "a9a.t": Known(16281, 123, ("a9a.t",)),
    "covtype": Known(581012, 54, ("covtype.libsvm.binary.bz2",), nonzeros=6_940_438),
    "gisette": Known(6000, 5000, ("gisette_scale.bz2",), nonzeros=29_729_997),
    "gisette.t": Known(1000, 5000, ("gisette_scale.t.bz2",)),
    "ijcnn1": Known(49990, 22, ("ijcnn1.bz2",)),
    "madelon": Known(2000, 500, ("madelon",), nonzeros=999_999),
    "madelon.t": Known(600, 500, ("madelon.t",)),
    "mushrooms": Known(8124, 112, ("mushrooms",), nonzeros=170_604),
    "news20": Known(15935, 62061),
    "news20.binary": Known(19996, 1355191, ("news20.binary.bz2",), nonzeros=9_097_916),
    "phishing": Known(11055, 68, ("phishing",), nonzeros=331_610),
    "rcv1": Known(697641, 47236, ("rcv1_train.binary.bz2", "rcv1_test.binary.bz2"), nonzeros=51_055_210),
    "rcv1_vw1000": Known(None, 47236),
    "real-sim": Known(72309, 20958, ("real-sim.bz2",), nonzeros=3_709_083),
    "sector.scale": Known(6412, 55197),
    "url": Known(2396130, 3231961, ("url_combined.bz2",), nonzeros=277_058_644),
    "url_Day45": Known(None, 3231961),
    "url_sub2000": Known(None, 3231961),
    "w1a": Known(2477, 300, ("w1a",)),
    "w8a": Known(49749, 300, ("w8a",), nonzeros=579_586),
    "w8a.t": Known(14951, 300, ("w8a.t",)),
}


def how_to_get(name: str | None) -> str:
    """The command that fetches a set; "" where there is none."""
    gettable = (name in KNOWN and KNOWN[name].files) or (name in PUBLISHED and PUBLISHED[name].source)
    return f"mpi-compress data get {name}" if gettable else ""
