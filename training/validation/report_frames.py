"""The parts of a validation's page that show single frames, and where everything came from."""

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any
from urllib.parse import quote, urlencode

from framesift.forms.cards import CARD_WIDTH, card, picture, sheet, words_of
from pipeline.runs.prediction_set import MOST_NAMED
from training.validation.frame_pictures import FramePictures
from training.validation.report_plots import percent, scored

_LINKS = (
    "Links lead to the frames where a server of Framesift shows this page; elsewhere, framesift "
    "show FRAME shows one."
)


def frame_sections(report: Mapping[str, Any], pictures: Mapping[int, FramePictures]) -> str:
    """The worst and the most uncertain frames, with their pictures.

    Args:
        report: As `training.validation.report.build_report` describes it.
        pictures: By the frames' rows.
    """
    above: set[int] = set()
    worst = _frames(report["worst_frames"], pictures, above)
    unsure = _frames(report["most_uncertain_frames"], pictures, above)
    if not worst and not unsure:
        return ""
    keys = (
        '<p class="quiet">Of each: the image, the truth, the prediction, and the errors in red. '
        f"{_LINKS}</p>"
    )
    html = f"<h2>Worst frames</h2>\n<p>By their own mean IoU, lowest first.</p>\n{keys}\n{worst}\n"
    if not unsure:  # of predictions without probabilities
        return html
    return html + (
        "<h2>Most uncertain frames</h2>\n<p>By the entropy of the prediction, highest first: "
        f"these are worth a look before others, also where nobody has labelled them.</p>\n{unsure}"
    )


def _frames(
    rows: Sequence[Mapping[str, Any]], pictures: Mapping[int, FramePictures], above: set[int]
) -> str:
    """The frames as a gallery; those whose pictures stand above lead there."""
    cards = []
    for row in rows:
        cards.append(_frame(row, pictures.get(row["row"]), is_above=row["row"] in above))
        above.add(row["row"])
    return sheet(cards, 2 * CARD_WIDTH) if cards else ""


def _frame(row: Mapping[str, Any], pictures: FramePictures | None, *, is_above: bool) -> str:
    fkey = row["fkey"]
    path = escape(quote(fkey, safe="/:"), quote=True)
    values = (
        f'<a href="/frames/{path}">{escape(fkey)}</a><br>'
        f"mean IoU {percent(row['miou'])}{_uncertainty(row['uncertainty'])}"
    )
    if is_above:
        shown = f'<p><a href="#frame-{row["row"]}">Its pictures stand above</a></p>'
    else:
        shown = f'<div class="panels" id="frame-{row["row"]}">{_panels(fkey, pictures)}</div>'
    return card(fkey, shown, words_of(row, fkey), values)


def _panels(fkey: str, pictures: FramePictures | None) -> str:
    if pictures is None:
        return ""
    kinds = ("image", "truth", "prediction", "errors")
    return "".join(
        picture(getattr(pictures, kind), "image/jpeg", f"{kind} of {fkey}") for kind in kinds
    )


def _uncertainty(share: float | None) -> str:
    return "" if share is None else f", uncertainty {percent(share)}"


def confusions(report: Mapping[str, Any], job: str | None) -> str:
    """The pairs of classes that are confused, the most frequent first, with links to their frames.

    Args:
        report: As `training.validation.report.build_report` describes it.
        job: The job that has the frames' cells; without one, Find has them by imported scores.
    """
    rows = report["largest_confusions"]
    if not rows:
        return ""
    body = "\n".join(
        f'<tr><th scope="row">{escape(row["truth"])}</th><td class="left">'
        f"{escape(row['predicted'])}</td><td>{row['pixels']:,}</td>"
        f"{scored(row['share_of_truth'], row['share_of_truth_interval'])}<td>"
        f'<a href="{escape(path)}">frames</a></td></tr>'
        for row in rows
        for path in [_frames_path(report, row["truth_tag"], row["predicted_tag"], job)]
    )
    once = "" if job else ", once the scores are imported (framesift tags import-scores)"
    return (
        "<h2>What is taken for what</h2>\n<p>The pairs of most pixels. The links list the frames "
        f"of each{once}.</p>\n"
        '<div class="scroll" tabindex="0"><table>\n<thead><tr><th scope="col" class="name">Is</th>'
        '<th scope="col" class="name">Was taken for</th><th scope="col">Pixels</th>'
        '<th scope="col">Share of the class</th><td></td></tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>\n{_all_pairs(report, job)}"
    )


def _all_pairs(report: Mapping[str, Any], job: str | None) -> str:
    """Every pair of classes that a pixel was confused in, folded up, with links to its frames."""
    names, tags = report["classes"], [row["tag"] for row in report["per_class"]]
    lines = []
    for truth, row in enumerate(report["confusion_matrix"]):
        pairs = sorted((-pixels, n) for n, pixels in enumerate(row) if pixels and n != truth)
        cells = [
            f'<a href="{escape(_frames_path(report, tags[truth], tags[n], job))}">'
            f"{escape(names[n])}</a> {-pixels:,}"
            for pixels, n in pairs
        ]
        if cells:
            lines.append(f"<p><strong>{escape(names[truth])}</strong>: {', '.join(cells)}</p>")
    return f"<details><summary>All pairs, by pixels</summary>\n{''.join(lines)}</details>"


def _frames_path(report: Mapping[str, Any], truth: str, predicted: str, job: str | None) -> str:
    """The page of the frames of a pair on a server of Framesift."""
    if job:
        cell = {"truth": truth, "predicted": predicted}
        return f"/jobs/{quote(job, safe='')}/frames?{urlencode(cell)}"
    where = f"confusion({truth}, {predicted}) >= 1"
    question = json.dumps({"model": report["model"]["name"], "where": where})
    return "/?" + urlencode({"question": question})


def skipped(report: Mapping[str, Any]) -> str:
    """The frames that could not be read."""
    rows = report["skipped_frames"]
    if not rows:
        return ""
    names = "".join(
        f"<li>{escape(row['fkey'])}: {escape(row['reason'])}</li>" for row in rows[:_MOST_SKIPPED]
    )
    more = len(rows) - _MOST_SKIPPED
    return (
        f"<h2>Frames left out</h2>\n<p>{len(rows):,} could not be read, and are in no score"
        + (f"; the first {_MOST_SKIPPED} are" if more > 0 else "")
        + f":</p>\n<ul>{names}</ul>"
    )


_MOST_SKIPPED = 50


def lineage(report: Mapping[str, Any]) -> str:
    """Where dataset and model come from."""
    record, dataset, model = report["lineage"], report["dataset"], report["model"]
    if not record:
        return ""
    facts = [
        ("Dataset", f"{dataset['name']} v{dataset['version']}, id {dataset['id']}"),
        ("Question", json.dumps(record["question"], ensure_ascii=False)),
        ("Catalog snapshot, seed", f"{record['snapshot']}, {record['seed']}"),
        ("Made of", ", ".join(_named(parent) for parent in record["parents"])),
        *_of_model(record, model),
    ]
    rows = "".join(
        f'<tr><th scope="row">{name}</th><td class="left wrap">{escape(value)}</td></tr>'
        for name, value in facts
        if value
    )
    return f"<h2>Where it comes from</h2>\n<table><tbody>{rows}</tbody></table>"


def _of_model(record: Mapping[str, Any], model: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    if "predictions" in record:
        return _of_predictions(record, model)
    return (_of_onnx if "onnx" in record else _of_network)(record, model)


def _of_onnx(record: Mapping[str, Any], model: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    """Of a network of an ONNX file."""
    file = record["onnx"]
    takes = {name: value for name, value in file["takes"].items() if name != "name"}
    width_px, height_px = record["input"]
    producer = file["producer"], f"version {file['version']}" if file["version"] else ""
    return (
        ("Model", ", ".join(filter(None, (model["name"], _named(record["info"]))))),
        ("Network", f"{record['network']}, {file['file']}, SHA-256 {model['sha256']}"),
        ("Made by", ", ".join(filter(None, producer))),
        ("Takes", f"{file['takes']['name']}: {width_px}x{height_px}, {_named(takes)}"),
        ("Gives", f"{file['gives']['name']}: {file['gives']['kind']}"),
    )


def _of_network(record: Mapping[str, Any], model: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    continued = record["continued_from"]
    return (
        ("Model", f"{model['name']}, step {model['step']:,}, SHA-256 {model['sha256']}"),
        ("Network", f"{record['network']}, input {record['input'][0]}x{record['input'][1]}"),
        ("Trained on", _named(record["trained_on"])),
        ("Continued from", "" if continued is None else _named(continued)),
    )


def _of_predictions(
    record: Mapping[str, Any], model: Mapping[str, Any]
) -> Sequence[tuple[str, str]]:
    """Of a model whose predictions another program made."""
    predictions = record["predictions"]
    names = [*predictions["extra_names"], *(["..."] if predictions["extra"] > MOST_NAMED else [])]
    return (
        ("Model", ", ".join(filter(None, (model["name"], _named(record["info"]))))),
        ("Predictions", f"{predictions['place']}, encoding {predictions['encoding']}"),
        ("Missing", f"{predictions['missing']:,}"),
        ("With confidence", f"{predictions['with_confidence']:,}"),
        ("Of no frame", f"{predictions['extra']:,}: {', '.join(names)}" if names else ""),
    )


def _named(thing: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in thing.items() if value not in (None, ""))
