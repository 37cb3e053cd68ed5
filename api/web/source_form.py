"""The form of a source as the body that REST takes, with the same words for what is wrong."""

from typing import Any
from urllib.parse import urlencode

from api.schemas.sources import NewSource
from api.web.forms import Form
from query.question.wrong_value import checked

_TEXTS = (
    "name", "uri", "platform", "layout", "endpoint_url", "profile", "access_key", "secret_key",
    "region", "site",
)  # fmt: skip


def new_source(form: Form, **more: Any) -> NewSource:
    """The source that a form asks for; what is left empty is left to its default.

    Args:
        form: What was sent.
        more: Fields in the form's place.

    Raises:
        InvalidInput: A value cannot be used.
    """
    fields: dict[str, Any] = {name: value for name in _TEXTS if (value := form.get(name))}
    if form.get("anonymous"):
        fields["anonymous"] = True
    return checked(NewSource, **{**fields, **more})


def frames_path(datasource: str) -> str:
    """Find, with the frames of a source."""
    quoted = datasource.replace("'", "''")
    return "/?" + urlencode({"where": f"datasource = '{quoted}'"})
