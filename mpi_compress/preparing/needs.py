"""What a run needs of its parts, in one place: preparing asks it, and `plan` does before data are read, as far as it is known."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from mpi_compress.algorithms import Algorithm, Downlink, Estimator, Method, Setting, algorithms
from mpi_compress.algorithms.needs import is_exact
from mpi_compress.algorithms.product import other_parts
from mpi_compress.algorithms.rules import Rule
from mpi_compress.algorithms.steps import THEORY, formulas_in, formulas_of, names_of, takes_theorem_step, theorems_of
from mpi_compress.algorithms.theorem import unproved
from mpi_compress.algorithms.tuning.sizes import tuned
from mpi_compress.core.errors import NotMet, UserError, checked_at, placed
from mpi_compress.core.unknown import UNKNOWN, NotYetKnown
from mpi_compress.guard.of_messages import float_ignored
from mpi_compress.job.runs import RunSpec
from mpi_compress.job.tables import LinkTable
from mpi_compress.job.trials import trials
from mpi_compress.messages.compressors.base import among, has_state
from mpi_compress.messages.costs.base import check_cost
from mpi_compress.messages.link import Link
from mpi_compress.preparing.problems import OF_SMOOTHNESS, Problem, foreseen, refuse_left_out, refuse_smoothness, start_of
from mpi_compress.preparing.shapes import shape_of
from mpi_compress.problem.partitions import refuse_idle_workers

NOTHING_RUN = "; nothing was run: --only takes the runs of other labels"


def _with(trait: str) -> str:
    """The methods that have a trait."""
    return ", ".join(name for name in algorithms if getattr(algorithms[name], trait))


def _refusals(spec: RunSpec) -> Iterator[str]:
    """What is refused of the tables of a run and its method, in sentences for users; `Method.needs` says what the method needs."""
    workers, method = spec.workers, spec.algorithm
    name, as_set = method.name, f"{method.name}, as it is set here,"
    if not isinstance(method, Algorithm):
        for key in ("cost_up", "wire_bits_up"):
            if key in spec.stop.columns:
                yield f"stop.{key}: {name} shares memory and counts no bits; give rounds or seconds"
        if spec.cost.clock is not None:
            yield f"cost.model = {spec.cost.name}: {name} shares memory and sends no messages; leave it out"
        if spec.computing is not None:
            yield f"time.compute: {name} shares memory, and its clock is the machine's; leave it out"
        if spec.log.count:
            yield f"log.count: {name} shares memory and sends no messages; leave it out"
    rule = spec.time.rule_of(workers.count)
    if (workers.participants or rule) and not method.partial_mean:
        key, given = ("time.wait", rule.wait) if rule else ("workers.participate", workers.participate)
        enough = f"some of them are enough for {_with('partial_mean')}"
        own = '; partial_mean = "over participants" or "over all" says so of one of your own'
        yield f"{key} = {given}: {as_set} needs all workers in every round; {enough}{own}"
    if rule and takes_theorem_step(method) and not (method.theorem.of_first and (rule.all_begin_together or _by_birch(spec))):
        yield f"time.wait = {rule.wait}: no theorem of {name} is about the first to arrive: give algorithm.step a number"
    if rule and not rule.all_begin_together:
        yield from _refusals_of(rule, spec, as_set)


def _refusals_of(rule: Rule, spec: RunSpec, name: str) -> Iterator[str]:
    """What is refused of a method whose workers do not begin together."""
    method: Any = spec.algorithm
    has_links, is_estimator = spec.cost.clock is not None, isinstance(method, Estimator)
    if not is_estimator or method.beside or method.first == "gradient" or type(method.by).verbs is not Downlink.verbs:
        yield f"time: the workers of {name} take turns, coins or points before as rounds go on: give wait alone, or leave it out"
    if rule.stale and is_estimator and method.adds_up and not remembers(method):
        what = "send differences to what all know, which has moved on"
        yield f"time.stale = {rule.stale}: the workers of {name} {what}: give stale = 0"
    has_memory = remembers(method) or has_state(spec.up.compressor)
    if rule.tables and (has_memory or not _sends_gradients(method)):
        yield f'time.rule = "ringleader": its tables take gradients, which {name} does not send: name sgd or gd'
    if not has_memory:
        return
    if rule.wait > spec.workers.count:
        yield f"time.wait = {rule.wait}: the workers of {name} remember what they sent: wait for {spec.workers.count} at most"
    if rule.weight != "1":
        yield f"time.weight = {rule.weight}: the workers of {name} remember what they sent, unweighted: leave weight out"
    if rule.may_ignore(has_links):
        takes_all = "stale = inf takes every message" + ', and late = "stop" without links' * (not has_links)
        yield f"time.stale = {rule.stale}: the workers of {name} remember what they sent, which may be ignored: {takes_all}"


def remembers(method: Any) -> bool:
    """True if what a worker of a method sends depends on what it has sent."""
    cls = type(method)
    return cls.start_worker is not Algorithm.start_worker and not hasattr(cls.start_workers, "notes")


def _sends_gradients(method: Any) -> bool:
    """True if the mean of what workers send estimates ∇f."""
    return not method.adds_up and all(getattr(type(method), verb) is getattr(Estimator, verb) for verb in ("estimate", "move"))


def _by_birch(spec: RunSpec) -> bool:
    """True if the step is `theory`, and workers do not begin together."""
    rule = spec.time.rule_of(spec.workers.count)
    return rule is not None and not rule.all_begin_together and THEORY in names_of(spec.algorithm.step, {})


def _birch_step(spec: RunSpec, setting: Setting) -> str:
    """γ as a formula: Birch SGD (arXiv 2505.09218), for the mean of r gradients of one f with noise σ, and E‖∇f‖² ≤ ε. NotMet where
    the run is not of that theorem."""
    method: Any = spec.algorithm
    rule: Any = setting.rule
    σ, R = spec.objective.noise or getattr(spec.loss, "noise", 0.0), rule.distance
    ε = next((target.level for target in spec.stop.targets if target.column == "squared_grad_norm"), 0.0)
    plain = is_exact(setting.up) and method.batch is None and not other_parts(method) and rule.weight == "1"
    if not (plain and (spec.partition.shared or setting.n == 1) and math.isfinite(R) and (ε or not σ)):
        needs = 'partition "everyone", exact and unweighted messages, no batch and a finite time.stale'
        raise NotMet(f"algorithm.step: `theory` is Birch SGD's here: it needs {needs}, and with noise stop.squared_grad_norm")
    return f"r*min(1/(2*{max(1, R)}*L)" + (f", {ε}/(4*{σ}**2*L))" if σ else ", 1/L)")


def algorithm_of(spec: RunSpec, problem: Problem, numbers: Mapping[str, float]) -> Method:
    """The run's algorithm, bound to its setting, its formulas evaluated; NotMet if a need is not met, UserError with its place in
    the job for what else is wrong."""
    setting, algorithm = _setting_of(spec, problem, numbers), spec.algorithm
    for sentence in _refusals(spec):
        raise NotMet(sentence)
    if _by_birch(spec):
        algorithm = algorithm.bound_to(theory=_birch_step(spec, setting))
    for key in formulas_of(type(algorithm)):
        for formula in formulas_in(getattr(algorithm, key)):
            refuse_smoothness(formula, problem.L, spec, f"algorithm.{key}", names_of(formula, theorems_of(algorithm)))
    try:
        method = checked_at("algorithm", algorithm.bind, setting)
    except NotMet as error:
        raise NotMet(f"algorithm: {error}") from None
    if "lyapunov" in spec.asked and spec.log.theory and (why := unproved(method)):
        raise NotMet(f"log.theory: the job asks for lyapunov, and {why}")
    return method


def refuse_runs(specs: Sequence[RunSpec], of_job: Sequence[RunSpec]) -> None:
    """UserError with what is known already to refuse the first of these runs; it says whether others of the job can be run."""
    for spec in specs:
        if spec.missing:
            with placed(spec.where):
                spec.data.file(spec.folder)
        if why := refusal(spec):
            raise UserError(f"{spec.where}{why}{if_others_go(spec, of_job, refusal)}")


def if_others_go(spec: RunSpec, of_job: Iterable[RunSpec], refused: Callable[[RunSpec], object]) -> str:
    """What is said behind the refusal of a run where all runs of another label would go, as none of them is `refused`."""
    labels = {other.label: True for other in of_job if other.label != spec.label}
    for other in of_job:
        labels[other.label] = labels.get(other.label, False) and not (other.missing or refused(other))
    return NOTHING_RUN * any(labels.values())


def refusal(spec: RunSpec) -> str:
    """Why a run is refused, by what is known of its data; "" if nothing speaks against it. No data are read, and nothing is
    solved or compiled: what depends on a number that is not known yet is not asked."""
    spec = trials(spec)[0] if spec.tune else spec
    if not spec.loss.of_margin or spec.up.compressor.follows == "noise":
        return ""  # the data themselves decide
    n, N, d = spec.workers.count, UNKNOWN, spec.data.known_dim or UNKNOWN
    try:
        if shape := shape_of(spec):
            N, d = shape.n_samples, shape.dim
            refuse_idle_workers(1 if spec.partition.shared else n, N)
        problem = foreseen(spec, N, d)
        refuse_left_out(spec, problem.penalty)
        L, numbers = problem.L, {"mu": problem.mu, "n": float(n), "d": d, "N": N, "g0": UNKNOWN}
        if L is UNKNOWN or not math.isnan(L):
            numbers |= dict.fromkeys(OF_SMOOTHNESS, UNKNOWN) | {"L": L}
        algorithm_of(spec, problem, numbers)
        if spec.start_point is not None:
            start_of(spec, problem)
    except UserError as error:
        return str(error)
    except Exception:  # NotYetKnown; or a fault of a user's part, which the run reports
        pass
    return ""


def _setting_of(spec: RunSpec, problem: Problem, numbers: Mapping[str, float]) -> Setting:
    """What the run fixes for its algorithm; UserError where that does not go together."""
    algorithm = spec.algorithm
    up, down = (_link(spec, way, problem) for way in ("up", "down"))
    for model in (spec.cost, spec.cost.of_down):
        checked_at("cost", check_cost, model)
    regularizer, penalty = algorithm.regularizer or spec.objective.regularizer, problem.penalty
    if penalty is not None and regularizer == "worker" and penalty.smooth:
        penalty = None  # in the f_i
    if penalty is not None and not algorithm.proximal:
        why = "is at the master" if penalty.smooth else "is not smooth"
        raise UserError(
            f"objective.penalty: '{penalty.name}' {why}, and {algorithm.name} has no step that applies it; these have one: "
            + _with("proximal")
        )
    rule = spec.time.rule_of(spec.workers.count)
    rounds = {"rounds": float(spec.stop.planned)} if spec.stop.planned is not None else {}
    return Setting(
        n=spec.workers.count, dim=problem.dim, up=up, down=down, cost=spec.cost, numbers={**numbers, **rounds},
        mu_apart=problem.mu if regularizer == "master" else 0.0, x_star=problem.x_star, f_star=problem.f_star,
        penalty=problem.penalty, penalty_apart=penalty, participants=rule.wait if rule else spec.workers.participants,
        rule=rule, computing=spec.computing,
        whole=partial(problem.objective, n=1, mu=problem.mu) if problem.loss.of_margin else None,
        shapes=[*problem.loss.blocks.values()],
    )  # fmt: skip


def _link(spec: RunSpec, way: str, problem: Problem) -> Link:
    """The link of a direction, "up" or "down"."""
    table: LinkTable = getattr(spec, way)
    dim, sizes, where = problem.dim, [*map(math.prod, problem.loss.blocks.values())], f"{way}.compressor"
    compressor = checked_at(where, table.compressor.in_run, dim, sizes=sizes)
    compressor = checked_at(where, among, compressor, spec.workers.count)
    sets = spec.algorithm.sets_compressor and (way == "up" or way in spec.algorithm.links)
    follows = way == "up" and compressor.follows == "step" and hasattr(spec.algorithm, "in_round")  # error feedback sets it
    if not (table.budget or sets or follows):
        with suppress(NotYetKnown):
            checked_at(where, compressor.check, dim)
    link = Link(compressor, table.codec, dim)
    if spec.owns(table.codec) and table.codec.float != type(table.codec).float and (wrong := float_ignored(link)):
        raise UserError(f"{way}.codec: {wrong}")
    return checked_at(f"{way}.budget", tuned, link, spec.cost) if table.budget else link
