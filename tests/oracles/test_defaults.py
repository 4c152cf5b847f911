"""What a job gets where it says nothing: `defaults.toml` has the default of every parameter of every part, as papers and users have them.

A default that changes changes the results of jobs that are written already; it is changed in that file by hand, and in the CHANGELOG.
"""

import dataclasses
import tomllib
from pathlib import Path

import pytest

import mpi_compress as mc
from mpi_compress.job import tables

WANTED = tomllib.loads(Path(__file__).with_name("defaults.toml").read_text())
KINDS = ("algorithms", "codecs", "compressors", "costs", "generators", "losses", "metrics", "models", "penalties")
TABLES = ("Stop", "ObjectiveTable", "WorkersTable", "StartTable", "LogTable", "FigureTable", "PanelTable", "Claim", "LinkTable")


def defaults_of(part):
    """By name; "needed" where there is none, and "left out" for None, which TOML does not have."""
    return {f.name: default_of(f) for f in dataclasses.fields(part) if f.init}


def default_of(field):
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return "needed" if field.default is dataclasses.MISSING else "left out" if field.default is None else field.default


def told_apart(tables):
    """The same with the types of numbers: 1 is not 1.0, nor true."""
    return {name: {key: (type(value), value) for key, value in fields.items()} for name, fields in tables.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_every_part_has_the_defaults_that_jobs_were_written_with(kind):
    registry = getattr(mc, kind)
    ours = {name: defaults_of(registry[name]) for name in registry if registry[name].__module__.startswith("mpi_compress.")}
    assert told_apart({name: fields for name, fields in ours.items() if fields}) == told_apart(WANTED[kind])


def test_a_step_by_theory_is_the_one_that_jobs_were_written_with():
    registry = mc.algorithms
    steps = {name: defaults_of(registry[name]).get("step") for name in registry if registry[name].__module__.startswith("mpi_compress.")}
    assert {name: registry[name].theory for name, step in steps.items() if step == "theory"} == WANTED["theory"]


def test_every_table_of_a_job_has_them_too():
    assert told_apart({name: defaults_of(getattr(tables, name)) for name in TABLES}) == told_apart(WANTED["tables"])
