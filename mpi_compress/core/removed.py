"""What jobs and commands had once and no longer have, and what to write instead: a job that names it gets one line that says so."""

from collections.abc import Iterable

from mpi_compress.core.errors import UserError, nearest

REMOVED: dict[str, str] = {
    "--ranks": "`plan` prints the memory of one process; more ranks share the rows and the workers' states",
    "tune.merit": "name a target, to = { squared_grad_norm = 1e-4 }: if no value reaches it, the one that comes nearest wins",
    "tune.rounds": "trials are as long as the run, and most end earlier; [stop] says how long it is",
    "tune.wire_bits_up": "trials are as long as the run, and most end earlier; [stop] says how long it is",
    "tune.seed": "seeds = [0] has trials of one seed, which runs of other seeds share",
    "tune.descent": "a trial that ends above the loss that it starts with never wins",
    "emulate": '`python -m benchmarks.links JOB --link "5 ms, 1 Gbit/s"` does that in a checkout',
    "reproduce": "`mpi-compress report JOB… --run` runs first what is not done",
    "records": "`mpi-compress check JOB` checks records, and `mpi-compress plot --profile JOB…` draws profiles",
    "--publish": "the zip and its CITATION.cff are what a repository such as Zenodo takes",
    "mc.run.until": "register a stop, mc.stops, and name it in [stop]",
    "mc.run.metrics": "register a metric, mc.metrics, and name it in [log] metrics",
    "workers.robust": "an estimator of your own can answer something else than the mean: def answer(self, ups)",
    "workers.byzantine": "an estimator of your own can change what some workers send: t.who is the worker's number",
    "workers.fold": "messages are added up in worker order: leave it out",
    "cost.compute": 'computing has a table of its own: [time] compute = "2 ns", per = "nonzero"',
    "objective.clip_rows": 'up.compressor = "clip" clips what a worker sends',
    "data.stand-in": 'let [data] name the set that the job uses, and [full] that of the paper: data = { name = "rcv1" }',
}
"""By the last names of a key's place in a job, such as "workers.fold", or by a command or an option."""


def refuse_key(where: str, key: str, known: Iterable[object]) -> UserError:
    """The error for a key that a table at `where` does not have: what replaces it, or the nearest right name."""
    place = f"{where}.{key}" if where else key
    for name, instead in REMOVED.items():
        if place == name or place.endswith((f".{name}", f" {name}")):
            return UserError(f"{place}: was removed; {instead}")
    names = [*known]
    wrong = nearest(key, names, "key") if names else f"no key called '{key}'; it has none"
    return UserError(f"{where}: {wrong}" if where else wrong)
