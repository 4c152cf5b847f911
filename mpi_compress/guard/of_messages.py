"""Compressors and codecs against what they state: δ, ω and variance, round trips, draws, and what they remember."""

import copy
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import combinations, product
from typing import Any

import numpy as np

from mpi_compress.core import arrays
from mpi_compress.core.blame import is_ours, place_in_part, place_of, place_of_class
from mpi_compress.core.errors import CorruptMessage
from mpi_compress.core.registry import with_inner
from mpi_compress.core.streams import Role, Round, Streams
from mpi_compress.guard.findings import SEED, Finding, Findings, either, seeded, tried, worst
from mpi_compress.messages.codecs import Codec, codecs
from mpi_compress.messages.compressors.base import Compressor, among, compressors
from mpi_compress.messages.kinds import Compressed, Vector, checked
from mpi_compress.messages.link import Link

_DIMS = (12, 60, 1000, 50_000)  # of vectors; the first that the parameters go with
_FAR, _MOST = 4, 140_000  # times its largest size is d at least; d at most, where half of the indices need more than 16 bits
_DRAWS, _NUMBERS = (100, 1000), 4_000_000  # of a random compressor, of each vector; the more, the fewer numbers they have
_MOST_DRAWS, _BIAS = 20_000, 0.08  # of ones, as long as no bias of this share of v would be seen
_streams = cache(Streams)
_SIGMAS = 6.0  # standard errors that a mean may be off: of 400 means one is by chance in a check of 10⁶
_CHANCE, _TIGHT = 3.0, 0.05  # standard errors that a mean often is off; the largest relative one of what is called tight
LOOSE = 1.6  # times what was found, from which on a bound says too little
_OF_FLOATS: Mapping[Any, Any] = {64: (1e-15, 0.0), 32: (1e-7, 1e-40), 16: (1e-3, 1e-7), "bf16": (1e-2, 1e-40)}
"""What floats may be off, relative, and the least of a number below which they have fewer digits."""
_USUAL: Mapping[str, Any] = {
    "k": 3, "levels": 4, "threshold": 0.5, "epsilon": 0.5, "kappa": 0.3, "sigma": 0.1, "q": 3.0, "step": 0.01, "block": 5,
    "columns": 4, "n": 3, "k_min": 2, "k_max": 4, "slices": 3, "of": "identity",
    "first": {"name": "random-k", "k": 3}, "then": "natural",
}  # fmt: skip


def round_of(k: int, worker: int = 0, state: Any = None, seed: int = 0) -> Round:
    """Round k of a worker; of other seeds it draws independently."""
    return Round(k, _streams(SEED + seed), Role.WORKER, worker, state=state)


def links_in_runs(c: Compressor, dim: int = 0, by: Codec | None = None) -> list[Link]:
    """Links of a compressor as it is in a run, with a codec, by default the one that it counts: for a small d, though none at which
    it states that it is exact and is not elsewhere, for one far above all of its sizes, and for the job's `dim`; ValueError if no d
    goes with it."""
    c = among(c, getattr(c, "n", None) or 3)
    sizes = [size for part in with_inner([c]) for size in vars(part).values() if type(size) is int]
    dims = dict.fromkeys([*_DIMS[:-1], min(_FAR * max([250, *sizes]), _DIMS[-1])])
    links = [link for d in dims if (link := link_at(c, d, by)) and (d == dim or can_be_stated(c, d))]
    some = [link for link in links if link.compressor.delta(link.dim) != 1 and link.compressor.omega(link.dim) != 0] or links
    found = {link.dim: link for link in (*some[:1], *some[-1:], dim and link_at(c, min(dim, _MOST), by)) if link}
    return [*found.values()] or [link_in_run(c, _DIMS[-1], by)]


def can_be_stated(c: Compressor, dim: int) -> bool:
    """True if this d goes with what a compressor states: k/d is above 1 for a d below k."""
    try:
        c.delta(dim)
        c.omega(dim)
    except ValueError:
        return False
    return True


def link_at(c: Compressor, dim: int, by: Codec | None = None) -> Link | None:
    """The link of a compressor for this d, if that goes with its parameters."""
    try:
        return link_in_run(c, dim, by)
    except (ValueError, TypeError):
        return None


def link_in_run(compressor: Compressor, dim: int, by: Codec | None = None) -> Link:
    """The same for this d; ValueError or TypeError if it does not go with the parameters."""
    found = compressor.in_run(dim, step=0.1, regime=False, noise=(1.0, 1.0))
    found.check(dim)
    link = Link(found, by or codecs[found.codec](), dim)
    link.refuse_other_kind(checked(found.applied(np.ones(dim), round_of(0, state=link.start())), dim))
    return link


def usual(cls: type[Compressor]) -> Compressor:
    """A compressor with parameters that tests use, where it needs some; ValueError if these are not enough."""
    named = [name for name in _USUAL if name in cls.__dataclass_fields__]
    for way in (way for size in range(3) for way in combinations(named, size)):
        with suppress(Exception):  # the next parameters may do
            made = cls(**{name: _USUAL[name] for name in way})
            links_in_runs(made)
            return made
    with suppress(TypeError):
        return cls()  # a check of it says what is wrong
    raise ValueError(f"{cls.__name__} needs parameters: give some, such as k=3")


def vectors(dim: int) -> dict[str, Vector]:
    """Vectors that compressors find hard, by what they are."""
    rng = seeded()
    normal, one = rng.standard_normal(dim), np.zeros(dim)
    one[dim // 2] = -3.0
    return {
        "0": np.zeros(dim),
        "of tiny numbers": 1e-310 * np.sign(normal),
        "of normal numbers": normal,
        "of heavy tails": normal**5,
        "of one coordinate": one,
        "of signs": np.sign(normal) * np.where(np.arange(dim) % 2, 1.0, 2.0),
        "of ones": np.ones(dim),  # of which most compressors lose most
    }


def of_two_levels(dim: int) -> dict[str, Vector]:
    """Vectors of some ones and smaller numbers elsewhere: of one of these quantisers by the largest coordinate lose most."""
    pairs = product(dict.fromkeys((1, math.isqrt(dim), dim // 2)), (0.0, 1 / (1 + math.sqrt(dim)), 1 / 8))
    return {f"of {m} ones and {a:.3g} elsewhere": np.where(np.arange(dim) < m, 1.0, a) for m, a in pairs}


def compress(given: Compressor, dim: int) -> Findings:
    """Whether a compressor gives a message at all, and for which d the other checks say more; `dim` is the job's."""
    try:
        used = [link.dim for link in links_in_runs(given, dim)]
        of_job = f"; the job's is {dim}" + ", which does not go with it" * (min(dim, _MOST) not in used)
        yield Finding("dimensions", True, f"d = {', '.join(map(str, used))}{of_job * bool(dim)}")
    except Exception as error:
        yield Finding("compress", False, f"{error}{place_in_part(error)}")


def applied(c: Compressor, v: Vector, k: int, worker: int = 0) -> Compressed:
    state = c.start(v.size)
    return checked(c.applied(arrays.read_only(v), round_of(k, worker, state)), v.size)


def state(given: Compressor, links: Sequence[Link]) -> Findings:
    """Whether a checkpoint can hold a compressor's state, and the same rounds give the same."""
    c, dim, state = links[0].compressor, links[0].dim, links[0].start()
    v = vectors(dim)["of normal numbers"]

    def again() -> Any:
        own = copy.deepcopy(state)
        found = np.array([checked(c.applied(v, round_of(k, 1, own)), dim).dense() for k in range(3)])
        c.applied(2.0 * v[::-1].copy(), round_of(7, 2, copy.deepcopy(state)))
        return found

    other = "the same rounds give something else the second time; random numbers come from t.rng, and memory from start(dim)"
    yield either("repetition", np.array_equal(again(), again()), "the same rounds give the same", other)


def theorems(_: Compressor, links: Sequence[Link]) -> Findings:
    """A compressor's δ, ω and variance by sampling, with a new state each time; and for which d they are loose, though not for
    all."""
    each_d = list[tuple[Finding, int]]()
    for link in links:
        vs = vectors(link.dim) | of_two_levels(link.dim)
        found = [one for name, v in vs.items() for one in tried(f"a vector {name}", _theorems, link.compressor, v, name)]
        each_d += [(one, link.dim) for one in worst(found)]
    for one in worst(one for one, _ in each_d):
        other, dim = min(((o, d) for o, d in each_d if o.what == one.what), key=lambda pair: pair[0].ratio)
        also = f"; for d = {dim} it is loose by {1 / other.ratio:.2g} times" if _is_loose(other) and not _is_loose(one) else ""
        yield replace(one, text=one.text + also)


def _is_loose(found: Finding) -> bool:
    return bool(found.holds and 0 < found.ratio * LOOSE < 1)


def _theorems(c: Compressor, v: Vector, name: str) -> Findings:
    us = (vectors(v.size)["of normal numbers"], v)  # of v alone, chance may draw nothing
    random = any((applied(c, u, 0).dense() != applied(c, u, k, k % 3).dense()).any() for u in us for k in range(1, 40))
    count, most = (int(np.clip(_NUMBERS // v.size, _DRAWS[0], most)) if random else 1 for most in (_DRAWS[1], _MOST_DRAWS))
    draws: list[Vector] = []
    while True:
        draws += [applied(c, v, k, k % 3).dense() for k in range(len(draws), count)]
        found = [*stated(c, v, np.array(draws), name)]
        if name != "of ones" or count == most or not any(each.doubt for each in found):
            break
        count = min(2 * count, most)
    yield from found


def stated(c: Compressor, v: Vector, found: Any, name: str) -> Findings:
    """What a compressor states, against draws of C(v), found (draws, d)."""
    dim, square, errors = v.size, float(v @ v), np.sum((found - v) ** 2, axis=1)
    mean, error = float(errors.mean()), float(errors.std()) / math.sqrt(len(errors))
    least, δ, ω, bound = mean - _SIGMAS * error, c.delta(dim), c.omega(dim), c.variance(dim)
    if square <= 1e-300 and (δ, ω) != (None, None) and not mean <= 1e-300:
        yield Finding("δ" if ω is None else "ω", False, f"{mean:.3g} is the mean of ‖C(v) − v‖² for d = {dim} with a vector {name}")
        return
    share, of_share = (each / square if square > 1e-300 else 0.0 for each in (mean, error))
    by = f"for d = {dim}; {{}} was found with a vector {name}"
    if δ is not None and (ω is None or δ != 1 - ω):  # else ω says the same
        seen = 0.0 if len(errors) > 1 and np.ptp(errors) == 0 and δ * len(errors) < _SIGMAS**2 else δ  # it may be drawn rarely
        yield _bound("δ", least <= (1 - seen) * square * (1 + 1e-9) + 1e-300, δ, 1 - share, of_share, by)
    if ω is not None:
        yield _bound("ω", least <= ω * square * (1 + 1e-9) + 1e-300, ω, share, of_share, by)
    if bound is not None:
        yield _bound("variance", least <= bound * (1 + 1e-9), bound, mean, error, by)
    if ω is not None and square > 1e-300:
        yield _unbiased(found, v, max(0.0, ω - max(0.0, least) / square), name, ω if ω > LOOSE * share else 0.0)


def _bound(what: str, holds: bool, said: float, seen: float, error: float, by: str) -> Finding:
    """What is stated against what was found, and its standard error; its ratio is without what chance may have made."""
    chance = _CHANCE * error + 1e-9 * said
    tight = bool(holds and error <= _TIGHT * said and abs(seen - said) <= chance)
    ratio = said / max(seen + chance, 1e-300) if what == "δ" else (seen - chance) / max(said, 1e-300)
    found = f"at worst {seen:.6g}" + f" ± {error:.1g}" * bool(error > 1e-9 * said)
    if holds and abs(seen - said) > 1e-9 * said and (seen < said) == (what == "δ"):
        limit = said + _SIGMAS * error * (-1 if what == "δ" else 1)
        found += f" (a standard error; up to {_SIGMAS:g} of them, {limit:.6g}, may be chance)"
    text = f"{said:.6g} is stated {by.format(found)}" + ": tight" * tight
    finding = Finding(what, bool(holds), text, ratio=1.0 if tight else ratio)
    loose = f": loose by {1 / max(ratio, 1e-300):.2g} times" * _is_loose(finding)
    return replace(finding, text=text + loose)


def contradicted(link: Link) -> dict[str, str]:
    """What draws of C(v), v of ones, prove wrong of what a compressor states, and what says more. The rest need not hold."""
    c, wrong = link.compressor, list[Finding]()
    if link.dim > _DIMS[-1]:
        return {}  # draws would take as long as rounds
    with suppress(Exception):  # as a run may do, too
        wrong = [each for each in _theorems(c, np.ones(link.dim), "of equal numbers") if not each.holds]
    does = f"check-part tries more vectors{place_of_class(type(c))}"
    return {f"{c.name} does not hold what it states: {each.what}, {each.text}": does for each in wrong}


def states_something(c: Compressor, dim: int) -> bool:
    """True if a compressor states δ, ω or a variance for this d, and the δ can be one."""
    δ = c.delta(dim)
    return (δ, c.omega(dim), c.variance(dim)) != (None, None, None) and (δ or 0) <= 1


def _unbiased(found: Any, v: Vector, unseen: float, name: str, loose: float) -> Finding:
    """Whether the mean of C(v) is v, along v and along signs, by its standard error, for which the variance that was measured and
    the `unseen` that ω leaves beside it are added: that of what is drawn rarely. Of one draw C(v) is exact. All in units of ‖v‖.
    `loose` is ω if it says too little, else 0."""
    along = np.array([v, np.sign(v), np.ones(v.size), *seeded().choice([-1.0, 1.0], (6, v.size))])
    off = (found - v) @ (along / np.linalg.norm(along, axis=1, keepdims=True)).T / np.linalg.norm(v)
    errors = np.sqrt((off.var(axis=0) + unseen) / len(off)) * (len(off) > 1)
    most, mean = _SIGMAS * errors + 1e-9, off.mean(axis=0)
    wrong = ~(np.abs(mean) <= most)  # NaN, too
    i = int(wrong.argmax())
    seen = f"{mean[i]:.4g} ‖v‖ away from v" if i else f"{1 + mean[0]:.4g} v along v"
    text = f"the mean of C(v) is {seen}, ± {errors[i]:.1g}"
    doubt = "not judged" * bool(most[0] > _BIAS)
    if doubt and not wrong[i]:
        text = f"a bias below {most[0]:.0%} cannot be seen in {len(off)} draws"
    text += f", for d = {v.size} with a vector {name}"
    text += f": the stated ω = {loose:.6g} is loose, and leaves so much unseen" * bool(doubt and loose)
    return Finding("unbiased", not wrong[i], text, doubt=doubt, ratio=float((abs(mean[i]) if wrong[i] else 1.0) / most[i]))


def not_finite(_: Compressor, links: Sequence[Link]) -> Findings:
    """Whether NaN and infinity are passed on."""
    c, dim = links[0].compressor, links[0].dim
    for bad in (math.nan, math.inf):
        wrong = ""
        try:
            with np.errstate(all="ignore"):
                if applied(c, np.full(dim, bad), 0).is_finite():
                    wrong = "is lost, and a run that diverges goes on unseen"
        except (OverflowError, FloatingPointError):
            pass
        except Exception as error:
            wrong = f"ends a run that diverges with {type(error).__name__}: {error}{place_in_part(error)}"
        would_do = "send nan or inf, or raise OverflowError"
        yield either(f"a vector of {bad}", not wrong, "is passed on, or refused", f"{wrong}; {would_do}")


def codec(_: Compressor, links: Sequence[Link]) -> Findings:
    """Whether a compressor's messages are decoded to what was encoded."""
    for link in links:
        yield from tried(f"codec, d = {link.dim}", _through, link.codec, link.compressor, link.dim)


def _through(by: Codec, c: Compressor, dim: int, cut: bool = False) -> Findings:
    """Messages of vectors that are hard, whole, and `cut` short."""
    for name, v in vectors(dim).items():
        content = applied(c, v, 0)
        try:
            data = arrays.raw(by.encode(content))
        except OverflowError as error:  # its floats cannot hold a value, or it writes no such kind
            if not (cut or by.writes(type(content))):
                raise
            yield Finding("round trip", cut or by.float == 16 or not v.any(), f"a vector {name}: {error}")
            continue
        yield _round_trip(by, content, data, c, f"a vector {name}")
        if name == "of normal numbers" and (wrong := _float_ignored(by, content)):
            yield Finding("float", False, wrong)
        if cut and data.size > 1:
            yield _cut(by, content, c, data[:-1].copy())


def float_ignored(link: Link) -> str:
    """What is wrong where the codec's `float` changes the paper bits of a message and none of its bytes; ""."""
    with suppress(Exception):  # the run says more
        return _float_ignored(link.codec, applied(link.compressor, np.ones(link.dim), 0))
    return ""


def _float_ignored(codec: Codec, content: Compressed) -> str:
    other = 32 if codec.float == 64 else codec.float
    whole, short = (codec.bound_to(float=each) for each in (64, other))
    many, few = whole.paper_bits(content), short.paper_bits(content)
    counted = few != many and getattr(content, "floats", not is_ours(content))  # exponents of ours are counted by it, too
    if not counted or bytes(arrays.raw(whole.encode(content))) != bytes(arrays.raw(short.encode(content))):
        return ""
    same = f"{type(codec).__name__}.encode writes the same bytes as with 64, and paper bits are {few:g}, not {many:g}"
    return f"float = {other} changes nothing: {same}; write floats of self.float_format{place_of(type(codec).encode)}"


def _round_trip(codec: Codec, content: Compressed, data: Any, c: Compressor, name: str) -> Finding:
    """The content of a message between other bytes, decoded, against what was encoded."""
    around = np.pad(data, (3, 5), constant_values=(7, 9))
    read, end = codec.decode(around, 3, content.dim, c.makes, c.known(content.dim))
    sent, found = content.dense(), read.checked(content.dim).dense()
    (relative, least), apart = _OF_FLOATS[codec.float], np.abs(found - sent)
    text = f"{name}, d = {content.dim}, as {type(content).__name__}, by {codec.name} with float = {codec.float}"
    if end != 3 + data.size:
        return Finding("round trip", False, f"{text}: its {data.size} bytes end at {end - 3}")
    same = (apart <= relative * np.abs(sent) + least) | (found == sent) | (np.isnan(found) & np.isnan(sent))
    i = int(np.argmin(same))
    return either("round trip", same.all(), f"{text}, comes back", f"{text}: {sent[i]:.9g} comes back as {found[i]:.9g}")


def messages(codec: Codec, dim: int) -> Findings:
    """A codec's messages of every kind that it writes, of every compressor that makes such, whole and cut short; of one of this
    package's of each kind for the largest d, too."""
    kinds = set[Any]()
    for name, cls in compressors.items():
        try:
            links = links_in_runs(usual(cls), dim)
            largest = [link_at(links[0].compressor, _MOST)] if cls.makes not in kinds else []
        except Exception:  # its own check finds what is wrong with it
            continue
        if codec.writes(links[0].compressor.makes):
            kinds.add(cls.makes)
            for link in filter(None, [*largest, *links]):
                yield from tried(f"messages of {name}, d = {link.dim}", _through, codec, link.compressor, link.dim, cut=True)
    if not kinds:
        yield Finding("kinds", False, "no compressor that is known here makes what it writes")


def _cut(codec: Codec, content: Compressed, c: Compressor, data: Any) -> Finding:
    """What is made of a message without its last byte: it may not be read beyond its end."""
    message = f"a message of kind {type(content).__name__} is"
    try:
        _, end = codec.decode(data, 0, content.dim, c.makes, c.known(content.dim))
        return Finding("cut short", end <= data.size, f"{message} read beyond its end")
    except (CorruptMessage, OverflowError):
        return Finding("cut short", True, f"{message} refused")
    except Exception as error:
        wrong = f"{type(error).__name__}: {error}; bytes that it cannot have written raise mc.CorruptMessage"
        return Finding("cut short", False, wrong)
