"""A plugin of pytest, `-p helpers.by_line`: notes which test enters which line and how long each takes, or plays the quickest first.

BY_LINE_SECONDS names a file that the seconds of each test are written to; what is measured by `coverage` then has the test as its
context, or the file of tests where a fixture is set up. Processes that it starts are measured, too, with the settings of
BY_LINE_SETTINGS, in which BY_LINE_TEST is the context. BY_LINE_ORDER names a file of tests, a line each: they are played in this order.
BY_LINE_LIMITS names a file with each test's seconds of the processor, after which the process is ended: a mistake may make a loop
without an end.
"""

import json
import os
import resource
from pathlib import Path

import pytest

_seconds: dict[str, float] = {}
_order = os.environ.get("BY_LINE_ORDER")
_notes = os.environ.get("BY_LINE_SECONDS")
_limits = json.loads(Path(os.environ["BY_LINE_LIMITS"]).read_text()) if "BY_LINE_LIMITS" in os.environ else {}


def _within(context):
    if _notes:
        import coverage

        coverage.Coverage.current().switch_context(context)
        os.environ |= {"BY_LINE_TEST": context, "COVERAGE_PROCESS_START": os.environ["BY_LINE_SETTINGS"]}


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    _within(item.nodeid.partition("::")[0])
    if limit := _limits.get(item.nodeid):
        own = resource.getrusage(resource.RUSAGE_SELF)
        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (int(own.ru_utime + own.ru_stime + limit), most))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item):
    _within(item.nodeid)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item):
    _within(item.nodeid.partition("::")[0])


def pytest_runtest_logreport(report):
    _seconds[report.nodeid] = _seconds.get(report.nodeid, 0.0) + report.duration


def pytest_sessionfinish(session):
    if _notes:
        Path(_notes).write_text(json.dumps(_seconds))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    if _order:
        turn = {name: i for i, name in enumerate(Path(_order).read_text().splitlines())}
        items.sort(key=lambda item: min(turn.get(item.nodeid, len(turn)), turn.get(item.nodeid.partition("::")[0], len(turn))))
