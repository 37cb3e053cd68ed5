"""The OpenAPI description of /mcp, which no route of FastAPI's answers."""

from typing import Any

PATH = "/mcp"


def _message(required: list[str], **properties: Any) -> dict[str, Any]:
    """The schema of a message of JSON-RPC."""
    return {
        "type": "object",
        "required": ["jsonrpc", *required],
        "properties": {"jsonrpc": {"const": "2.0"}, **properties},
    }


_OBJECT = {"type": "object"}
_ID = {"type": ["string", "integer"]}
_ASKED = _message(
    ["method"],
    id=_ID | {"description": "Of a request; a notification has none."},
    method={"type": "string", "examples": ["tools/list", "tools/call"]},
    params=_OBJECT,
)
_RESULT = _message(["id", "result"], id=_ID, result=_OBJECT)
_ERROR = _message(
    ["id", "error"],
    id={"type": ["string", "integer", "null"]},
    error={
        "type": "object",
        "required": ["code", "message"],
        "properties": {"code": {"type": "integer"}, "message": {"type": "string"}},
    },
)
_TEXT = [{"type": "text", "text": '{"snapshot": 3, "frames": 24, "classes": []}'}]
_NO_JSON = {"code": -32700, "message": "Parse error"}
_REFUSED = {
    "application/json": {
        "schema": _ERROR,
        "example": {"jsonrpc": "2.0", "id": None, "error": _NO_JSON},
    },
    "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}},
}

OPERATION: dict[str, Any] = {
    "tags": ["assistants"],
    "summary": "Ask A Tool",
    "operationId": "post_mcp",
    "description": "A message of the Model Context Protocol (JSON-RPC 2.0). There are no sessions, "
    "so no stream to GET and nothing to DELETE. `tools/list` has every tool with a schema of its "
    "arguments; none changes anything.",
    "parameters": [
        {
            "name": "MCP-Protocol-Version",
            "in": "header",
            "required": False,
            "description": "As `initialize` agreed on it.",
            "schema": {"type": "string"},
            "example": "2025-06-18",
        }
    ],
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": _ASKED,
                "example": {
                    "jsonrpc": "2.0",
                    "id": 1,
                    "method": "tools/call",
                    "params": {"name": "describe_catalog", "arguments": {}},
                },
            }
        },
    },
    "responses": {
        "200": {
            "description": "The answer to a request, or why there is none.",
            "content": {
                "application/json": {
                    "schema": {"oneOf": [_RESULT, _ERROR]},
                    "example": {"jsonrpc": "2.0", "id": 1, "result": {"content": _TEXT}},
                }
            },
        },
        "202": {"description": "A notification has come; the body is empty."},
        "400": {
            "description": "No message of the protocol, or of another version.",
            "content": _REFUSED,
        },
        "406": {"description": "Accept wants no JSON.", "content": _REFUSED},
    },
}
"""POST, before what holds for every operation is added."""
