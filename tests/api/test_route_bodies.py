"""Routes are doors: what is done stands in services (docs/decisions/0039)."""

import ast

from tests.test_import_circles import REPOSITORY

ROUTES = REPOSITORY / "api" / "http" / "routes"
MOST_LINES = 8


def test_a_route_has_at_most_eight_lines() -> None:
    """Without its arguments and its docstring."""
    bodies = {
        f"{file.name}: {function.name}": _lines(function)
        for file in ROUTES.rglob("*.py")
        for function in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(function, ast.AsyncFunctionDef | ast.FunctionDef) and _is_route(function)
    }
    assert len(bodies) > 100
    assert {name: lines for name, lines in bodies.items() if lines > MOST_LINES} == {}


def _is_route(function: ast.AsyncFunctionDef | ast.FunctionDef) -> bool:
    return any(ast.unparse(one).startswith("router.") for one in function.decorator_list)


def _lines(function: ast.AsyncFunctionDef | ast.FunctionDef) -> int:
    first, *others = function.body
    begin = others[0] if ast.get_docstring(function) and others else first
    return (function.end_lineno or 0) - begin.lineno + 1
