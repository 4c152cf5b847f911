"""What methods need of the problem, the links and the setting, which is checked before anything runs."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from mpi_compress.algorithms.steps import Changing
from mpi_compress.core.errors import NotMet
from mpi_compress.core.unknown import NotYetKnown
from mpi_compress.messages.compressors.base import has_state


@dataclass(frozen=True)
class Need:
    """One thing that a method needs.

    Attributes:
        is_met: of a method that is bound to its setting.
        sentence: why another one is refused, and what would do; {name} is the method's.
        of: the numbers of the problem that decide it, some of which are known only once its data are read.
    """

    is_met: Callable[[Any], bool]
    sentence: str
    of: Sequence[str] = ()


def is_exact(link: Any) -> bool:
    """True if a link's compressor loses nothing."""
    return link.compressor.omega(link.dim) == 0.0


def _is_smooth_part_within(method: Any) -> bool:
    apart = method.setting.penalty_apart
    return not method.setting.mu_apart and not (apart is not None and apart.smooth)


WHOLE_GRADIENTS = Need(_is_smooth_part_within, '{name} needs the whole of ∇f_i: set regularizer = "worker"', of=("mu",))
_ADDED_UP = "{name} adds up what comes down, so that must be exact: leave [down] out, or use the identity"
EXACT_DOWN = Need(lambda m: is_exact(m.down) and m.down.codec.float == 64, f"{_ADDED_UP} and float = 64")
ROUNDED_DOWN = Need(lambda m: is_exact(m.down), _ADDED_UP)  # the master keeps what rounding left: `error_memory.Residual`
ADDS_UP: tuple[Need, ...] = (WHOLE_GRADIENTS, EXACT_DOWN)  # of methods whose workers send differences
UNBIASED_UP = Need(
    lambda m: m.up.compressor.unbiased(m.setting.dim), "{name} needs an unbiased compressor, such as random-k or qsgd"
)
HOMOGENEOUS_UP = Need(
    lambda m: m.up.compressor.name in ("top-k", "identity", "block-sign"),
    "{name} needs a compressor with C(tv) = t C(v): top-k, block-sign or the identity",
)
UNBIASED_DOWN = Need(
    lambda m: m.down.compressor.unbiased(m.setting.dim), "{name} needs an unbiased compressor down, such as perm-k or random-k"
)
STATELESS_DOWN = Need(
    lambda m: not has_state(m.down.compressor), "{name} has a message for each worker, and '{down}' remembers one sequence"
)
STRONGLY_CONVEX = Need(lambda m: m.setting.numbers["mu"] > 0, "{name} needs mu > 0", of=("mu",))
SMOOTH = Need(lambda m: "L_max" in m.setting.numbers, "{name} needs a loss that is smooth", of=("L_max",))
OPTIMUM = Need(lambda m: m.setting.x_star is not None, "{name} needs x*, which is not known here", of=("x*",))
LINEAR = Need(
    lambda m: m.setting.whole is not None,
    "{name} sends the samples of a linear model: name a loss of a margin, such as logistic, and no model",
)
LOSS_ALONE = Need(
    lambda m: not m.setting.penalty,
    "{name} uses second derivatives or a matrix L_i, which are those of the loss and of mu: leave objective.penalty out",
)
ONE_STEP_SIZE = Need(lambda m: not isinstance(m.step, Changing), "{name} takes one step size for all rounds")
HEARS_MEAN = Need(
    lambda m: m.by.everyone_remembers, 'the workers of {name} use the mean that they hear: leave by out of [down], or say "mean"'
)
LAST_ITERATE = Need(
    lambda m: getattr(m, "average", "last") == "last",
    'x is the master\'s own with {name}, so results are of the point that all nodes know: leave average out, or say "last"',
)


NO_GRADIENT = Need(  # of a direction that has errors or local steps in it, and is no estimate of ∇f
    lambda m: m.server.name != "l-bfgs",
    "the server l-bfgs takes differences of gradients, and the direction of {name} is no gradient: ef21 or diana would do",
)


def exact_up(sentence: str) -> Need:
    """The uplink's compressor loses nothing."""
    return Need(lambda m: is_exact(m.up), sentence)


def check_needs(method: Any) -> None:
    """NotMet with the sentence of the first need that the setting does not meet; ValueError for a share that is none. Before the
    data are read, only the needs that depend on nothing unknown are asked."""
    for need in method.needs:
        with suppress(NotYetKnown):
            check_need(need, method)
    batch, N = method.batch, method.setting.numbers["N"]
    if batch is not None and not 1 <= batch <= N:
        raise NotMet(f"batch = {batch} must be from 1 to the N = {N:.0f} samples; leave it out for full gradients")
    for key in method.shares:
        if not 0 < getattr(method, key) <= 1:
            mu_is_0 = ", and mu is 0" * (not method.setting.numbers["mu"])
            raise ValueError(f"{key} = {getattr(method, key)} must be above 0 and at most 1{mu_is_0}")


def check_need(need: Need, method: Any) -> None:
    """NotMet with a need's sentence if the setting does not meet it."""
    if not need.is_met(method):
        raise NotMet(need.sentence.format(name=method.name, down=method.down.compressor.name))
