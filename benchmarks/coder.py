"""mc.coder on arrays of other programs: top-k of 1 % with Rice's indices, beside plain NumPy that writes 32 bits an index.

Microseconds of one message, written and read, calls made in turn. Wanted: at most 3 × at d = 10³, below 1 × from 10⁴ on.
"""

import numpy as np

import mpi_compress as mc
from benchmarks._clock import side_by_side


def main() -> None:
    print(f"{'d':>9}{'ours':>10}{'NumPy':>10}{'ratio':>7}{'bits':>10}{'NumPy':>10}")
    for d in (10**3, 10**4, 10**5, 10**6):
        v, k = np.random.default_rng(0).standard_normal(d).astype(np.float32), d // 100
        coder = mc.coder("top-k", k=k, codec="rice", float=32)

        def ours(v=v, coder=coder):
            return coder.decode(coder.encode(v), v.size, np.float32)

        def plain(v=v, k=k):
            indices = np.argpartition(np.abs(v), v.size - k)[v.size - k :]
            data = indices.astype(np.uint32).tobytes() + v[indices].tobytes()
            out = np.zeros(v.size, np.float32)
            out[np.frombuffer(data, np.uint32, k)] = np.frombuffer(data, np.float32, k, 4 * k)
            return out

        assert np.array_equal(ours(), plain())
        took = side_by_side({"ours": ours, "plain": plain})
        ratio = took["ours"] / took["plain"]
        print(f"{d:9,}{took['ours']:10.1f}{took['plain']:10.1f}{ratio:7.2f}{coder.bits(v):10,}{64 * k:10,}")
