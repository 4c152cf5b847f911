"""The list of what is checked of users' parts.

Four callers select from it: `check-part` asks everything that a part can be asked, the rehearsal before a run whether two rounds do
what they may, a run at its end what its parts remember, and `run --verify` whether rounds are the same in other ways. Two functions
of the list look on while rounds run, since what they look for is in no result: `guard.verbs.first_state` and
`guard.verbs.watched`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from mpi_compress.algorithms import Algorithm
from mpi_compress.algorithms.contract import Method
from mpi_compress.algorithms.parts import Downlink, Server
from mpi_compress.core import global_draws
from mpi_compress.core.errors import UserError
from mpi_compress.guard import hidden_state, of_algorithms, of_data, of_functions, of_messages
from mpi_compress.guard.after_rounds import after_rounds
from mpi_compress.guard.findings import Finding, tried
from mpi_compress.guard.of_data import of_stop
from mpi_compress.job.stops import StopRule
from mpi_compress.messages.codecs import Codec
from mpi_compress.messages.compressors import Compressor
from mpi_compress.messages.costs import CostModel
from mpi_compress.messages.costs.base import check_cost
from mpi_compress.messages.link import Link
from mpi_compress.problem.datasets.formats import Format
from mpi_compress.problem.datasets.generators import Generator
from mpi_compress.problem.losses import Loss
from mpi_compress.problem.metrics import Metric, ProblemView
from mpi_compress.problem.models import Model
from mpi_compress.problem.partitions import Partition
from mpi_compress.problem.penalties import Penalty
from mpi_compress.problem.rows import Rows


@dataclass
class Subject:
    """A part, and what it can be asked by; None: what needs this is not asked. Made before the part is called."""

    part: Any
    parts: Sequence[Any] = ()  # those whose memory counts; (): the part alone
    link: Link | None = None  # of a compressor, as it is in a run
    rows: Rows | None = None  # of a model
    view: ProblemView | None = None  # of a metric: the problem
    file: tuple[Path, int | None] | None = None  # of a format, with d if it is known
    problems: Sequence[of_algorithms.Problem] | None = None  # of a method
    rounds: Callable[[], None] | None = None  # runs two rounds
    ways: Callable[[], Iterator[Finding]] | None = None  # compares rounds that were run in several ways
    held: hidden_state.Contents = field(init=False)  # what the parts held before
    drawn: Any = field(init=False)  # where global generators stood before

    def __post_init__(self) -> None:
        self.held, self.drawn = hidden_state.contents(self.parts or [self.part]), global_draws.states()


@dataclass(frozen=True)
class Check:
    """One thing that can be said of a part."""

    name: str
    of: Any  # the kinds of part that it is about
    takes: tuple[str, ...]  # what it needs: fields of `Subject`
    ask: Callable[..., Iterator[Finding]]

    def about(self, s: Subject) -> Iterator[Finding]:
        """What it finds; nothing if it is about other kinds, or needs what is not there."""
        given = [getattr(s, name) for name in self.takes]
        if isinstance(s.part, self.of) and all(each is not None for each in given):
            yield from (replace(found, by=self.name) for found in self.ask(*given))


def _cost(cost: CostModel) -> Iterator[Finding]:
    check_cost(cost)
    yield Finding("cost", True, "a number from 0 on, which does not fall as payloads grow, and the same for numbers and arrays")


def _drawn(part: Any, before: Any) -> Iterator[Finding]:
    moved = global_draws.states() != before
    text = "come from the global random or np.random" + ", not from t.rng" * isinstance(part, Compressor)
    yield Finding("draws", not moved, text if moved else "none are global")


CHECKS = (
    Check("compress", Compressor, ("part",), of_messages.compress),
    Check("state", Compressor, ("link",), of_messages.state),
    Check("theorems", Compressor, ("link",), of_messages.theorems),
    Check("after rounds", Compressor, ("link",), after_rounds),
    Check("NaN", Compressor, ("link",), of_messages.not_finite),
    Check("codec", Compressor, ("link",), of_messages.through_codec),
    Check("messages", Codec, ("part",), of_messages.messages),
    Check("cost", CostModel, ("part",), _cost),
    Check("slope", Loss, ("part",), of_functions.slope),
    Check("curvature", Loss, ("part",), of_functions.curvature_of_loss),
    Check("second derivative", Loss, ("part",), of_functions.second_derivative),
    Check("samples", Loss, ("part",), of_functions.samples),
    Check("gradient", Penalty, ("part",), of_functions.gradient_of_penalty),
    Check("prox", Penalty, ("part",), of_functions.prox),
    Check("gradient", Model, ("part", "rows"), of_functions.gradient_of_model),
    Check("mean", Model, ("part", "rows"), of_functions.mean_of_rows),
    Check("smoothness", Model, ("part", "rows"), of_functions.smoothness),
    Check("hessian_product", Model, ("part", "rows"), of_functions.hessian_product),
    Check("rehearsal", Method, ("part", "rounds"), of_algorithms.rehearsal),
    Check("rounds", Algorithm | Server | Downlink, ("problems",), of_algorithms.rounds),
    Check("ways", Method, ("ways",), lambda ways: ways()),
    Check("rows", Partition, ("part",), of_data.of_partition),
    Check("rows", Generator, ("part",), of_data.of_generator),
    Check("rows", Format, ("part", "file"), of_data.of_format),
    Check("value", Metric, ("part", "view"), of_data.of_metric),
    Check("answers", StopRule, ("part",), of_stop),
    Check("memory", object, ("held",), hidden_state.kept),
    Check("draws", object, ("part", "drawn"), _drawn),
)
"""What is asked last looks at what the others have left."""


def asked(s: Subject, name: str) -> Iterator[Finding]:
    """What the checks of a name find; their errors are raised."""
    return (found for check in CHECKS if check.name == name for found in check.about(s))


def refuse(s: Subject, name: str, where: str = "") -> None:
    """UserError if the checks of a name find something wrong."""
    for found in asked(s, name):
        if not found.holds:
            raise UserError(f"{where}{found.text}")


def everything(s: Subject) -> list[Finding]:
    """What all checks find, their errors too, each property once: what is wrong first found, or else what was tried last."""
    found: dict[str, Finding] = {}
    with global_draws.restored():
        for check in CHECKS:
            for each in tried(check.name, partial(check.about, s)):
                if each.what not in found or found[each.what].holds:
                    found[each.what] = each
    return [*found.values()]
