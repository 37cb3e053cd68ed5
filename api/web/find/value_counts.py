"""The frames of single values of a text, also of those that are too rare for a bin of a facet."""

from collections.abc import Collection, Sequence

from api.services.session import Session
from api.web.find.url_question import UrlQuestion
from query.statistics.histogram_report import MOST_VALUES

_ESCAPE = "!"


def value_counts(
    session: Session,
    search: UrlQuestion,
    classes: Collection[str],
    tag: str,
    rare: Sequence[str] = (),
) -> dict[str, int]:
    """Frames that fulfil the other conditions by value of a tag, those of most frames first.

    Args:
        search: What the page asks; its ``holding.TAG`` is the text that the values have, in letters
            of either case.
        classes: Tags that count a class's pixels.
        tag: Of a text: one of the catalog's.
        rare: Values to count beside those.
    """
    text, column = search.holding(tag), '"{}"'.format(tag.replace('"', '""'))
    chosen = (*search.all(tag), *search.all(f"is.{tag}"), *search.all(f"not.{tag}"))
    either = []
    if text:
        either.append(f"lower({column}) like {_pattern(text)} escape '{_ESCAPE}'")
    if values := [*dict.fromkeys((*rare, *chosen))]:
        either.append(f"{column} in ({', '.join(map(_quoted, values))})")
    others = search.without(tag, f"is.{tag}", f"not.{tag}")
    searched = f"({' or '.join(either)})"
    where = others.get("where")
    narrowed = others.shown(where=f"({where}) and {searched}" if where else searched)
    counted = session.statistics.histogram(tag, top=MOST_VALUES, **narrowed.which(classes))
    return {
        bin_.value: count
        for bin_, count in zip(counted.axes[0].bins, counted.counts, strict=True)
        if bin_.kind == "value" and bin_.value is not None and isinstance(count, int)
    }


def _pattern(text: str) -> str:
    """What LIKE takes for any value with that text in it."""
    plain = text.lower()
    for special in (_ESCAPE, "%", "_"):
        plain = plain.replace(special, _ESCAPE + special)
    return _quoted(f"%{plain}%")


def _quoted(text: str) -> str:
    return "'{}'".format(text.replace("'", "''"))
