"""What the parameters of a part mean: the comments beside its fields, as its source has them."""

import ast
import inspect
import io
import textwrap
import tokenize
from functools import cache
from typing import Any


def meanings(cls: Any) -> dict[str, str]:
    """The comment beside each field of a class, by the field's name; a field that is given anew without one keeps the former."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if "__annotations__" in vars(base):
            found |= _beside_fields(base)
    return found


@cache
def _beside_fields(cls: Any) -> dict[str, str]:
    try:
        source = textwrap.dedent(inspect.getsource(cls))
    except (OSError, TypeError):  # defined in a session
        return {}
    comments = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    body = ast.parse(source).body[0]
    fields = (node for node in getattr(body, "body", ()) if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name))
    beside = {node.target.id: comments.get(node.end_lineno or 0, "") for node in fields if isinstance(node.target, ast.Name)}
    return {name: meaning for name, meaning in beside.items() if meaning}
