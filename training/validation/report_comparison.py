"""The part of a validation's page that compares its model with another."""

from collections.abc import Mapping
from html import escape
from typing import Any

from training.validation.comparison import BETTER, WORSE, difference_text
from training.validation.report_plots import percent

_NAMES = {"miou": "Mean IoU", "pixel_accuracy": "Pixel accuracy"}


def comparison(report: Mapping[str, Any]) -> str:
    """The differences, the worst first; nothing where there is no other model."""
    result = report["comparison"]
    if result is None:
        return ""
    other = escape(f"{result['model']['name']}, step {result['model']['step']:,}")
    names = _NAMES | {row["tag"]: row["class"] for row in report["per_class"]}
    overall, classes = result["scores"][: len(_NAMES)], result["scores"][len(_NAMES) :]
    ordered = sorted(classes, key=lambda row: (row["difference"] is None, row["difference"] or 0))
    body = "\n".join(_row(row, names[row["score"]]) for row in (*overall, *ordered))
    return (
        f"<h2>Compared with {other}</h2>\n<p>{_regressions(result, names)} Both models were put "
        f"through the same frames. {_of_intervals(result)}</p>\n"
        '<div class="scroll" tabindex="0"><table>\n'
        "<caption>IoU of classes, the largest losses first. A "
        "difference in points is this model&rsquo;s score less the other&rsquo;s, with its "
        'interval of 95 %.</caption>\n<thead><tr><th scope="col" class="name">Score</th>'
        '<th scope="col">This model</th><th scope="col">The other</th>'
        '<th scope="col">Difference</th><td></td></tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def _row(row: Mapping[str, Any], name: str) -> str:
    verdict = row["verdict"] or ""
    if verdict == WORSE:
        verdict = '<span class="mark">worse</span>'
    elif verdict != BETTER:
        verdict = f'<span class="quiet">{verdict}</span>'
    return (
        f'<tr><th scope="row">{escape(name)}</th><td>{percent(row["value"])}</td>'
        f"<td>{percent(row['other'])}</td><td>{difference_text(row)}</td><td>{verdict}</td></tr>"
    )


def _regressions(result: Mapping[str, Any], names: Mapping[str, str]) -> str:
    if result["regressions"] is None:
        return "Whether a score is worse is unknown."
    if not result["regressions"]:
        return "No score is worse beyond chance."
    worse = escape(", ".join(names[name] for name in result["regressions"]))
    return f'<strong class="mark">Worse: {worse}.</strong>'


def _of_intervals(result: Mapping[str, Any]) -> str:
    if not result["draws"]:
        return "There are no intervals, and so no verdicts: they need frames of two scenes."
    return (
        f"Each of {result['draws']:,} draws of the {result['scenes']:,} scenes scores both, so "
        "that the intervals are of the differences."
    )
