"""The question as it is shown: its SQL, its conditions one by one, and copies for programs."""

import json
import shlex
from dataclasses import dataclass

from api.schemas.selections import DescriptionAnswer
from api.web.find.url_question import UrlQuestion

_LABELLED = "label_file is not null"
"""Begins the condition of every question that does not say so itself, and needs no saying."""


@dataclass(frozen=True)
class Chip:
    """One condition, the page without it, and the id of the field that changes it; "" without."""

    text: str
    without: str
    field: str = ""


def chips_of(search: UrlQuestion) -> list[Chip]:
    """Each condition of the URL."""
    chips = []
    for tag in search.tags("min", "max"):
        low, high = search.get(f"min.{tag}"), search.get(f"max.{tag}")
        text = f"{tag} {low or '…'} to {high or '…'}"
        field = f"min.{tag}" if low else f"max.{tag}"
        chips.append(Chip(text, search.without(f"min.{tag}", f"max.{tag}").url, field))
    for kind in ("has", "without"):
        for tag in search.tags(kind):
            name = f"{kind}.{tag}"
            chips.append(Chip(f"{kind} {tag}", search.without(name).url, name))
    for tag in search.tags("is"):
        text = f"{tag} is {' or '.join(search.all(f'is.{tag}'))}"
        chips.append(Chip(text, search.without(f"is.{tag}").url, f"is.{tag}"))
    for tag in search.tags("not"):
        text = f"{tag} is not known to be {' or '.join(search.all(f'not.{tag}'))}"
        chips.append(Chip(text, search.without(f"not.{tag}").url, f"is.{tag}"))
    for name in ("camera", "scene"):
        for value in search.all(name):
            chips.append(Chip(f"{name} {value}", search.without(name, value=value).url, name))
    chips += _of_pictures(search)
    for name in ("where", "question", "dataset", "split", "at"):
        if value := search.get(name):
            removed = (name, "split") if name == "dataset" else (name,)
            chips.append(Chip(f"{name} {value}", search.without(*removed).url))
    return chips


def _of_pictures(search: UrlQuestion) -> list[Chip]:
    """That the overlays show some classes alone, where they do."""
    truth, predicted = search.get("truth"), search.get("predicted")
    if not truth and not predicted:
        return []
    taken = f" taken for {predicted}" if predicted else ""
    text = f"pictures show {truth or 'any class'}{taken}"
    return [Chip(text, search.without("truth", "predicted").url)]


def copies_of(
    search: UrlQuestion, described: DescriptionAnswer, server: str, frames_path: str
) -> list[tuple[str, str]]:
    """The same question for curl, Python and the command line: each one's name, and its text.

    Args:
        search: Of the URL: a dataset and a split are beside the question.
        server: Its URL, without a slash at the end.
        frames_path: The path of the REST API's frames.
    """
    text = json.dumps(described.question, ensure_ascii=False)
    fields = {"question": text, "dataset": search.get("dataset"), "split": search.get("split")}
    data = " ".join(
        f"--data-urlencode {shlex.quote(f'{name}={value}')}"
        for name, value in fields.items()
        if value
    )
    arguments = "".join(
        f", {name}={value!r}" for name, value in fields.items() if value and name != "question"
    )
    python = (
        f"from framesift import Client\n\nclient = Client({server!r}, token)\n"
        f"frames = list(client.frames(question={described.question!r}{arguments}))"
    )
    curl = f'curl -G -H "Authorization: Bearer $FRAMESIFT_TOKEN" {server}{frames_path} {data}'
    line = f"echo {shlex.quote(text)} | framesift select --question -"
    if dataset := search.get("dataset"):
        of_split = ["--split", search.get("split")] if search.get("split") else []
        conditions = search.asked_alone.without("dataset", "split").query
        if conditions:  # `select` asks the catalog; this counts
            counted = shlex.join(["facets", "--dataset", dataset, *of_split])
            line = f"echo {shlex.quote(text)} | framesift {counted} --question -"
        else:
            line = shlex.join(["framesift", "dataset", "export", dataset, *of_split])
    return [("curl", curl), ("Python", python), ("command line", line)]


def condition_of(sql: str) -> str:
    """The condition of a statement that a description shows, to be edited; "" where it has none."""
    _, _, body = sql.partition("\nwhere ")
    condition = body.partition("\norder by")[0].partition("\nfetch first")[0].strip()
    return condition.removeprefix(_LABELLED).strip().removeprefix("and ").strip()
