"""Checks of what users' losses, penalties and models return: wrong shapes and NaN are errors that name the part."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np

from mpi_compress.core import arrays
from mpi_compress.core.blame import place_of
from mpi_compress.core.errors import UserError
from mpi_compress.core.global_draws import refusing
from mpi_compress.core.registry import Part, is_ours
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.losses import Loss
from mpi_compress.problem.models import Model
from mpi_compress.problem.penalties import Penalty

P = TypeVar("P", bound=Part)
_WATCHED = 32  # first calls of a method, whose draws are looked at


def checked_loss(loss: Loss) -> Loss:
    """The loss; a user's, with every value and slope checked."""
    second = partial(_of_margins, "second derivative")
    return _watching(loss, value_and_slope=_values_and_slopes, second_derivative=second, minimise=_minimiser)


def checked_model(model: Model) -> Model:
    """The model; a user's, with every loss, gradient and result for solvers checked."""
    return _watching(model, loss_and_gradient=_loss_and_gradient, hessian_product=_of_x, minimise=_minimiser)


def checked_penalty(penalty: Penalty) -> Penalty:
    """The penalty; a user's, with every value, gradient and prox checked."""
    return _watching(penalty, value=_value, gradient=_of_x, prox=_of_x)


def _watching(part: P, **checks: Callable[..., Any]) -> P:
    """A copy of a user's part whose methods return what a check makes of their results, called with the part and the arguments."""
    if is_ours(part):
        return part
    return part.bound_to(**{name: _checked(part, name, check) for name, check in checks.items() if hasattr(part, name)})


def _checked(part: Any, name: str, check: Callable[..., Any]) -> Callable[..., Any]:
    method, whose = getattr(part, name), f"'{getattr(part, 'name', type(part).__name__)}'"
    left = [_WATCHED]

    def call(*arguments: Any) -> Any:
        left[0] -= 1
        try:
            with np.errstate(all="ignore"):
                given = refusing(f"{whose}, {name}", method, *arguments) if left[0] >= 0 else method(*arguments)
        except NotImplementedError:
            raise UserError(f"{whose} defines no {name}, which what it states asks for") from None
        try:
            return check(part, given, *arguments)
        except ValueError as error:
            raise UserError(f"{whose}, {name}: {error}{place_of(method)}") from None

    return call


def _values_and_slopes(loss: Loss, given: Any, y: Vector, m: Vector) -> tuple[Vector, Vector]:
    values, slopes = _pair(given, "the values and the slopes (N,)")
    return _of_margins("value", loss, values, y, m), _of_margins("slope", loss, slopes, y, m)


def _of_margins(what: str, loss: Loss, given: Any, y: Vector, m: Vector) -> Vector:
    found = arrays.floats(given, m.shape, f"{what}s")
    wrong = np.isnan(found) & np.isfinite(m)
    if wrong.any():
        i = int(np.argmax(wrong))
        raise ValueError(f"the {what} is NaN for the label {y[i]:g} and the margin {m[i]:g}")
    return found


def _loss_and_gradient(model: Model, given: Any, x: Vector, rows: Any, draw: Any) -> tuple[float, Vector]:
    value, gradient = _pair(given, f"the mean loss and its gradient ({x.size},)")
    loss, g = arrays.number(value, "the loss"), arrays.floats(gradient, x.shape, "coordinates of the gradient")
    if np.isfinite(x).all() and np.isnan(loss):
        raise ValueError("the loss is NaN, where x is finite")
    if np.isfinite(x).all() and not (np.isfinite(g).all() or np.isinf(loss)):
        j = int(np.argmin(np.isfinite(g)))
        raise ValueError(f"the gradient is {g[j]} at coordinate {j}, where x is finite and the loss {loss:g}")
    return loss, g


def _value(penalty: Penalty, given: Any, x: Vector) -> float:
    found = arrays.number(given, "the value")
    if np.isnan(found) and np.isfinite(x).all():
        raise ValueError("the value is NaN, where x is finite")
    return found


def _minimiser(part: Any, given: Any, rows: Any, mu: float) -> Vector:
    return arrays.floats(given, (part.dim if isinstance(part, Model) else rows.dim,), "coordinates of x*")


def _of_x(part: Any, given: Any, x: Vector, *_: Any) -> Vector:
    found = arrays.floats(given, x.shape, "coordinates")
    if np.isnan(found).any() and np.isfinite(x).all():
        raise ValueError(f"coordinate {int(np.argmax(np.isnan(found)))} is NaN, where x is finite")
    return found


def _pair(given: Any, wanted: str) -> tuple[Any, Any]:
    if not (isinstance(given, tuple) and len(given) == 2):
        raise ValueError(f"{arrays.shown(given)} was given; it should be two: {wanted}")
    return given
