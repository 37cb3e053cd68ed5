"""The fields that a form of a page sends."""

from urllib.parse import parse_qsl

from starlette.requests import Request

from catalog.errors import InvalidInput

_TYPE = "application/x-www-form-urlencoded"
_MOST_FIELDS = 20_000


class Form:
    """The fields of a form, in their order; a name may come several times."""

    def __init__(self, fields: list[tuple[str, str]]) -> None:
        """Fields, decoded."""
        self._fields = fields

    def get(self, name: str) -> str:
        """The last value of that name, without blanks around it; "" where there is none."""
        return next((v.strip() for n, v in reversed(self._fields) if n == name), "")

    def chosen(self, name: str) -> str:
        """The value of a list; or the name of another, where one was typed beside it."""
        return self.get(f"named.{name}") or self.get(name)

    def __contains__(self, name: str) -> bool:
        """True when the form has the field, filled in or not."""
        return any(n == name for n, _ in self._fields)

    def all(self, name: str) -> list[str]:
        """Every value of that name."""
        return [value for n, value in self._fields if n == name]


def names(text: str) -> tuple[str, ...]:
    """Names that commas separate."""
    return tuple(filter(None, (name.strip() for name in text.split(","))))


async def form_of(request: Request) -> Form:
    """The form that a request carries.

    Raises:
        InvalidInput: It carries none.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != _TYPE:
        raise InvalidInput(f"Content-Type '{kind[:80]}': expected {_TYPE}, a page's form")
    body = await request.body()
    try:
        fields = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, errors="strict",
            max_num_fields=_MOST_FIELDS,
        )  # fmt: skip
    except ValueError as error:
        raise InvalidInput(f"body: no form: {error}") from error
    form = Form(fields)
    request.state.form = form  # a problem's page names its fields by their labels
    return form
