"""Sets that jobs name: their published shapes (SPEC: Data; the LIBSVM collection's own page)."""

from typing import NamedTuple


class Known(NamedTuple):
    """N samples and d features as published; `None` where a set is a part whose size is not fixed."""

    samples: int | None
    dim: int


KNOWN = {
    "a1a": Known(1605, 123),
    "a5a": Known(6414, 123),
    "a9a": Known(32561, 123),
    "a9a.t": Known(16281, 123),
    "covtype": Known(581012, 54),
    "gisette": Known(6000, 5000),
    "ijcnn1": Known(49990, 22),
    "madelon": Known(2000, 500),
    "madelon.t": Known(600, 500),
    "mushrooms": Known(8124, 112),
    "news20": Known(15935, 62061),
    "news20.binary": Known(19996, 1355191),
    "phishing": Known(11055, 68),
    "rcv1": Known(697641, 47236),
    "rcv1_vw1000": Known(None, 47236),
    "real-sim": Known(72309, 20958),
    "sector.scale": Known(6412, 55197),
    "url": Known(2396130, 3231961),
    "url_Day45": Known(None, 3231961),
    "url_sub2000": Known(None, 3231961),
    "w1a": Known(2477, 300),
    "w8a": Known(49749, 300),
}
