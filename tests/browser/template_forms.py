"""The forms of the web page as its templates have them, and whether a request is one of theirs."""

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Sent:
    """A request of a page."""

    method: str
    path: str
    fields: list[tuple[str, str]]


_PATHS = {"_logs.html": '"/jobs/" ~ name', "_narrow.html": ""}
"""Where a template's forms lead that are told by who shows it."""

_ANY = "\0"
"""Stands for what a template computes."""


@dataclass(frozen=True)
class Form:
    """A form of a template, or a button that sends one elsewhere."""

    template: str
    method: str
    targets: tuple[str, ...]
    """Paths, with _ANY for a part; each will do."""
    hidden: tuple[tuple[str, str], ...] = ()
    """Names and values that are always sent."""
    buttons: tuple[tuple[str, str], ...] = ()
    """Names and values of which one is sent."""
    names: tuple[str, ...] = ()
    """Of other fields: at least one is sent."""

    def is_sent_by(self, sent: Sent) -> bool:
        """Whether a request may be this form's."""
        pairs, names = sent.fields, {name for name, _ in sent.fields}
        return (
            sent.method == self.method
            and any(_like(target, sent.path) for target in self.targets)
            and all(_has(each, pairs) for each in self.hidden)
            and (not self.buttons or any(_has(each, pairs) for each in self.buttons))
            and (not self.names or not names.isdisjoint(self.names))
        )


def _like(pattern: str, text: str) -> bool:
    pieces = [re.escape(piece) for piece in pattern.split(_ANY)]
    return re.fullmatch(".*".join(pieces), text) is not None


def _has(field: tuple[str, str], pairs: list[tuple[str, str]]) -> bool:
    return any(name == field[0] and _like(field[1], value) for name, value in pairs)


def _attributes(tag: str) -> dict[str, str]:
    return dict(re.findall(r'([\w-]+)="([^"]*)"', tag))


def forms_of(path: Path) -> list[Form]:
    """All of a template, and its buttons that send a form elsewhere."""
    text = path.read_text()
    own = re.search(r"{% set path = (.*?) %}", text)
    expression = own[1] if own else _PATHS.get(path.name, "")
    own_path = "".join(
        piece.strip('"') if piece.startswith('"') else _ANY for piece in expression.split(" ~ ")
    )
    text = text.replace("{{ path }}", own_path)
    text = re.sub(r"{%.*?%}", "", re.sub(r"{{.*?}}", _ANY, text))
    forms = [_form(path.name, match[0]) for match in re.finditer(r"(?s)<form\b.*?</form>", text)]
    for tag in re.findall(r"<button\b[^>]*>", text):
        attributes = _attributes(tag)
        target = attributes.get("formaction") or attributes.get("hx-post")
        if target:
            chosen = ((attributes["name"], attributes["value"]),) if "name" in attributes else ()
            forms.append(Form(path.name, "POST", (target,), buttons=chosen))
    return forms


def _form(template: str, text: str) -> Form:
    head, *tags = re.findall(r"<(?:form|input|button|select|textarea)\b[^>]*>", text)
    attributes = _attributes(head)
    targets = [attributes[each] for each in ("action", "hx-get", "hx-post") if each in attributes]
    hidden, buttons, names = [], [], []
    for tag in tags:
        own = _attributes(tag)
        if own.get("name", _ANY) == _ANY:
            continue
        value = own.get("value", "")
        if own.get("type") == "hidden":
            hidden.append((own["name"], value))
        elif tag.startswith("<button"):
            buttons.append((own["name"], value))
        else:
            names.append(own["name"])
    return Form(
        template,
        attributes.get("method", "get").upper(),
        tuple(target.partition("#")[0] for target in targets),
        tuple(hidden),
        tuple(buttons),
        tuple(names),
    )
