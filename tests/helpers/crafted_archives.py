"""Archives that no `mpi-compress archive` writes, from one that it wrote: each way to be wrong, at places that a seed draws."""

import hashlib
import zipfile

SUMS, JOB = "SHA256SUMS", "jobs/two.toml"


def write(file, members, sums=None, method=zipfile.ZIP_DEFLATED, twice=(), name=SUMS, **patched):
    """A zip with right checksums, unless `sums` is given; `patched` goes into the entry of the member `name`."""
    right = "".join(f"{hashlib.sha256(text).hexdigest()}  {name}\n" for name, text in members.items() if name != SUMS)
    with zipfile.ZipFile(file, "w", method) as packed:
        for each in (*members, *twice):
            packed.NameToInfo.pop(each, None)  # which it would warn of
            packed.writestr(each, members[each] if each != SUMS else right if sums is None else sums)
        for key, value in patched.items():
            setattr(packed.getinfo(name), key, value)


def damage(rng, file, members):
    write(file, members)
    with zipfile.ZipFile(file) as packed:
        info = max(packed.infolist(), key=lambda info: info.compress_size)
    data, begin = bytearray(file.read_bytes()), info.header_offset + 30 + len(info.filename)
    for at in rng.sample(range(begin, begin + info.compress_size - 8), 5):
        data[at] ^= rng.randrange(1, 256)
    file.write_bytes(data)


def one(rng, members, ending=""):
    return rng.choice([name for name in sorted(members) if name.endswith(ending)])


def without(members, ending):
    return {name: text for name, text in members.items() if not name.endswith(ending)}


ELSEWHERE = ["../x.h5", "results/../../x.h5", "/tmp/x.h5", "played/two/x.h5", "results/x.ckpt", "jobs/\x1b[2J.py", "jobs/./x.py"]
WAYS = {
    "cut": lambda rng, file, m: (write(file, m), file.write_bytes(file.read_bytes()[: rng.randrange(file.stat().st_size - 22)])),
    "damaged": damage,
    "no sums": lambda rng, file, m: write(file, m, sums=""),
    "sums of noise": lambda rng, file, m: write(file, m, sums=rng.randbytes(300)),
    "a wrong sum": lambda rng, file, m: write(file, m, sums="".join(f"{rng.randbytes(32).hex()}  {n}\n" for n in m if n != SUMS)),
    "no job": lambda rng, file, m: write(file, without(m, ".toml")),
    "two jobs": lambda rng, file, m: write(file, {**m, f"jobs/{rng.random()}.toml": m[JOB]}),
    "no results": lambda rng, file, m: write(file, without(m, ".h5")),
    "a result is missing": lambda rng, file, m: write(file, without(m, one(rng, m, ".h5"))),
    "a result of noise": lambda rng, file, m: write(file, {**m, one(rng, m, ".h5"): rng.randbytes(300)}),
    "a job of noise": lambda rng, file, m: write(file, {**m, JOB: b"\xff" + rng.randbytes(300)}),
    "a label in two lines": lambda rng, file, m: write(file, {**m, JOB: m[JOB].replace(b'"whole"', b'"wh\\nole"')}),
    "encrypted": lambda rng, file, m: write(file, m, name=one(rng, m), flag_bits=1),
    "another method": lambda rng, file, m: write(file, m, method=rng.choice([zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])),
    "an unknown method": lambda rng, file, m: write(file, m, name=one(rng, m), compress_type=rng.randrange(15, 90)),
    "large": lambda rng, file, m: write(file, m, name=one(rng, m), file_size=rng.randrange(2**32, 2**40)),
    "a large module": lambda rng, file, m: write(file, m, name="jobs/evens.py", file_size=2**30),
    "elsewhere": lambda rng, file, m: write(file, {**m, rng.choice(ELSEWHERE): b"x"}),
    "twice": lambda rng, file, m: write(file, m, twice=[one(rng, m)]),
    "below a file": lambda rng, file, m: write(file, {**m, f"{one(rng, m)}/x.py": b""}),
}
