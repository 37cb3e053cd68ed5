"""/openapi.json, and /docs: a page to read of it, made here: no script, nothing of another host.

FastAPI's own pages load their scripts from a CDN. They stay blank in a closed network, and foreign
code would stand beside whoever tries out a token there.
"""

from html import escape
from itertools import groupby
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse, JSONResponse

from api.http.routing import Router
from api.http.rules import OPEN, Api

router = Router(api=Api.OTHER, include_in_schema=False)

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
}
_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 sans-serif; max-width: 62em; margin: 2em auto; padding: 0 1em; }
main { overflow-wrap: anywhere; }
a { color: inherit; }
summary { cursor: pointer; padding: .2em 0; }
code, b { font-family: monospace; } b { display: inline-block; width: 4.5em; }
td, th { text-align: left; vertical-align: top; padding: .1em 1em .1em 0; }
"""

_Operation = tuple[str, str, dict[str, Any]]


@router.get("/openapi.json", rule=OPEN)
async def get_document(request: Request) -> JSONResponse:
    """The OpenAPI document."""
    return JSONResponse(request.app.openapi())


@router.get("/docs", rule=OPEN)
async def get_documentation(request: Request) -> HTMLResponse:
    """Every operation, with its parameters and answers."""
    return HTMLResponse(page_of(request.app.openapi()), headers=_HEADERS)


def page_of(document: dict[str, Any]) -> str:
    """An OpenAPI document as HTML."""
    operations = [
        (path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if method != "head"  # each says the same
    ]
    groups = groupby(sorted(operations, key=_group), key=_group)
    sections = "".join(f"<h2>{escape(name)}</h2>{_section(group)}" for name, group in groups)
    title = escape(f"{document['info']['title']} {document['info']['version']}")
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head><body>"
        f'<header><a href="/">Back to Find</a></header><main><h1>{title}</h1>'
        f"<p>{escape(document['info']['description'])} With schemas and examples: "
        f'<a href="openapi.json">openapi.json</a>.</p>{sections}</main></body></html>\n'
    )


def _group(operation: _Operation) -> str:
    return str((operation[2].get("tags") or ["other"])[0])


def _section(operations: Any) -> str:
    return "".join(_operation(path, method, operation) for path, method, operation in operations)


def _operation(path: str, method: str, operation: dict[str, Any]) -> str:
    parameters = _table(
        (f"{each['in']}: {each['name']}", each.get("description", ""))
        for each in operation.get("parameters", ())
    )
    kinds = ", ".join(operation.get("requestBody", {}).get("content", ()))
    body = f"<p>Body: <code>{escape(kinds)}</code></p>" if kinds else ""
    answers = _table(
        (status, answer.get("description", "")) for status, answer in operation["responses"].items()
    )
    text = operation.get("description", operation.get("summary", ""))
    return (
        f"<details><summary><b>{method.upper()}</b> <code>{escape(path)}</code></summary>"
        f"<p>{escape(text)}</p>{parameters}{body}{answers}</details>"
    )


def _table(rows: Any) -> str:
    lines = [
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(text)}</td></tr>'
        for name, text in rows
    ]
    return f"<table>{''.join(lines)}</table>" if lines else ""
