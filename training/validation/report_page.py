"""A validation's report as one web page: no script, no network, everything inside.

Colours are variables, so that the page follows the reader's light or dark setting; the picture
of the matrix keeps its white paper in both.
"""

import base64
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from training.validation.frame_pictures import FramePictures
from training.validation.report_comparison import comparison
from training.validation.report_frames import confusions, frame_sections, lineage, skipped
from training.validation.report_plots import (
    iou_by_share,
    loss_curve,
    percent,
    reliability_diagram,
    scored,
    within,
)

RARE_FRAMES = 3
"""A class in fewer frames than this is named as rare: its IoU says little."""

_FEW_SCENES = 10

_STYLE = """
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1f2933; --quiet: #52606d;
  --line: #d5dbe0; --panel: #f4f6f8; --bar: #2f7d95; --track: #dfe5ea; --mark: #a8430f; }
@media (prefers-color-scheme: dark) { :root { --paper: #14191e; --ink: #e6ebef;
  --quiet: #a3b1bd; --line: #35404a; --panel: #1d242b; --bar: #5bb4cf; --track: #2c363f;
  --mark: #f0a06a; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 66rem; padding: 2rem 1.25rem 4rem; background: var(--paper);
  color: var(--ink); font: 16px/1.5 system-ui, "Segoe UI", Roboto, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .25rem; text-wrap: balance; }
h2 { font-size: 1.15rem; margin: 2.5rem 0 .75rem; }
p { max-width: 46rem; margin: .5rem 0; }
.quiet { color: var(--quiet); }
.numbers { display: grid; grid-template-columns: repeat(auto-fit, minmax(13rem, 1fr));
  gap: .75rem; margin: 1.5rem 0 0; padding: 0; }
.numbers div { background: var(--panel); border-radius: .5rem; padding: .9rem 1rem; }
.numbers dt { color: var(--quiet); font-size: .875rem; }
.numbers dd { margin: 0; }
.numbers .big { font-size: 1.9rem; font-weight: 600; font-variant-numeric: tabular-nums; }
.names { columns: 15rem; padding-left: 1.2rem; margin: .5rem 0; }
.scroll { overflow-x: auto; }
.scroll + .scroll { margin-top: 1.5rem; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
caption { text-align: left; color: var(--quiet); padding-bottom: .5rem; }
th, td { padding: .3rem .6rem; border-bottom: 1px solid var(--line); text-align: right;
  font-variant-numeric: tabular-nums; white-space: nowrap; }
thead th { color: var(--quiet); font-weight: 600; vertical-align: bottom; }
th[scope=row], th.name { text-align: left; font-weight: 400; }
td.bar { width: 12rem; text-align: left; }
.track { display: block; height: .7rem; border-radius: .2rem; background: var(--track); }
.fill { display: block; height: 100%; border-radius: .2rem; background: var(--bar); }
tr.none th, tr.none td { color: var(--quiet); }
.mark { color: var(--mark); font-weight: 600; }
td small { display: block; color: var(--quiet); font-size: .8125rem; }
img, svg { max-width: 100%; height: auto; display: block; }
img { background: #ffffff; border: 1px solid var(--line); border-radius: .5rem; }
td.left { text-align: left; }
td.wrap { white-space: normal; overflow-wrap: anywhere; }
.panels { display: grid; grid-template-columns: repeat(2, 1fr); gap: .15rem; }
.panels img { border: 0; border-radius: 0; }
figure p { padding: 0 .5rem; }
a { color: var(--bar); }
circle { fill: var(--bar); fill-opacity: .75; }
svg text { fill: var(--quiet); font: 12px system-ui, sans-serif; }
"""


def report_page(
    report: Mapping[str, Any],
    picture: bytes,
    curve: Sequence[Mapping[str, Any]],
    pictures: Mapping[int, FramePictures],
    job: str | None = None,
) -> str:
    """The page.

    Args:
        report: As `training.validation.report.build_report` describes it.
        picture: The confusion matrix, PNG.
        curve: The lines of the model's metrics.jsonl; may be empty.
        pictures: Of the worst and the most uncertain frames, by their rows.
        job: The validation's job, to whose pages links lead; None where it is none.

    Returns:
        HTML.
    """
    dataset, model = report["dataset"], report["model"]
    title = f"{model['name']} on {dataset['name']} v{dataset['version']}"
    parts = [
        f"<h1>Validation of {escape(title)}</h1>",
        _origin(report),
        _warnings(report),
        _numbers(report),
        _thresholds(report),
        comparison(report),
        _lacking(report),
        skipped(report),
        frame_sections(report, pictures),
        _matrix(picture),
        confusions(report, job),
        _classes(report),
        iou_by_share(report),
        _slices(report),
        _object_sizes(report),
        reliability_diagram(report["calibration"]),
        loss_curve(curve),
        lineage(report),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(section for section in parts if section)
        + "\n</main>\n</body>\n</html>\n"
    )


def _origin(report: Mapping[str, Any]) -> str:
    dataset, model = report["dataset"], report["model"]
    return (
        f'<p class="quiet">{_plural(report["frames"], "frame")} of split '
        f"“{escape(dataset['split'])}” (dataset id {escape(dataset['id'][:12])}), model of "
        f"step {model['step']:,} ({escape(model['sha256'][:12])}), "
        f"{_plural(report['shards'], 'shard')}.</p>"
    )


def _warnings(report: Mapping[str, Any]) -> str:
    return "\n".join(
        f'<p><strong class="mark">Warning:</strong> {escape(warning)}.</p>'
        for warning in report["warnings"]
    )


def _numbers(report: Mapping[str, Any]) -> str:
    baseline, intervals = report["baseline"], report["intervals"]
    always = escape(str(baseline["class"]))
    ignored = report["ignored_pixels"]
    known = sum(row["truth_pixels"] for row in report["per_class"])
    cells = [
        (
            "Mean IoU",
            percent(report["miou"]),
            _interval(intervals["miou"])
            + f"always “{always}”: {percent(baseline['miou'])}"
            + within(intervals["baseline_miou"]),
        ),
        (
            "Pixel accuracy",
            percent(report["pixel_accuracy"]),
            _interval(intervals["pixel_accuracy"])
            + f"always “{always}”: {percent(baseline['pixel_accuracy'])}"
            + within(intervals["baseline_pixel_accuracy"]),
        ),
        (
            "IoU by frequency",
            percent(report["frequency_weighted_iou"]),
            _interval(intervals["frequency_weighted_iou"]) + "frequent classes count more",
        ),
        (
            "Boundary IoU",
            percent(report["boundary_iou"]),
            _interval(intervals["boundary_iou"]) + "near the outlines only",
        ),
        (
            "Calibration error",
            percent(report["calibration"]["ece"]),
            _interval(intervals["ece"]) + "between what the model says and what is right"
            if report["calibration"]["ece"] is not None
            else "needs probabilities, and none are known",
        ),
        *_disagreement(report),
        (
            "Classes with truth",
            f"{len(report['classes']) - len(report['absent_classes'])}",
            f"of {len(report['classes'])} in the class list",
        ),
        (
            "Pixels left out",
            percent(ignored / (ignored + known)) if ignored + known else "none",
            f"{ignored:,} of a colour that is no class",
        ),
    ]
    boxes = "".join(
        f'<div><dt>{name}</dt><dd class="big">{value}</dd><dd class="quiet">{note}</dd></div>'
        for name, value, note in cells
    )
    return (
        f'<dl class="numbers">{boxes}</dl>\n<p class="quiet">Mean IoU is the mean, over the '
        "classes that have truth, of pixels found / (pixels of the class or "
        "taken for it). Predictions are compared at the labels&rsquo; full resolution; "
        f"outlines and calibration at the network&rsquo;s. {_of_intervals(intervals)}</p>"
    )


def _interval(interval: Sequence[float] | None) -> str:
    """The two ends of an interval, with a comma behind them; nothing for None."""
    return "" if interval is None else f"{percent(interval[0])} to {percent(interval[1])}, "


def _of_intervals(intervals: Mapping[str, Any]) -> str:
    if intervals["miou"] is None:
        return "There are no intervals: they need frames of at least two scenes."
    return (
        f"Intervals are of 95 %, by drawing the {intervals['scenes']:,} scenes "
        f"{intervals['draws']:,} times: they say how the scores would vary with other scenes of "
        "this kind."
        + (
            " With so few scenes they are a rough guide."
            if intervals["scenes"] < _FEW_SCENES
            else ""
        )
    )


def _thresholds(report: Mapping[str, Any]) -> str:
    if not report["thresholds"]:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{escape(row["score"])}</th><td>{percent(row["least"])}</td>'
        f"{scored(row['value'], row['interval'])}<td>"
        + ("reached" if row["reached"] else '<span class="mark">not reached</span>')
        + "</td></tr>"
        for row in report["thresholds"]
    )
    return (
        '<h2>What it must reach</h2>\n<div class="scroll" tabindex="0"><table>\n<thead><tr>'
        '<th scope="col" class="name">Score</th><th scope="col">At least</th>'
        '<th scope="col">Scored</th><td></td></tr></thead>\n'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _lacking(report: Mapping[str, Any]) -> str:
    absent = report["absent_classes"]
    rare = [r for r in report["per_class"] if 0 < r["frames"] < RARE_FRAMES]
    parts = ["<h2>What this data lacks</h2>"]
    if absent:
        parts.append(
            f"<p>This validation set has no pixel of {_plural(len(absent), 'class', 'classes')}; "
            "it cannot tell whether the model knows them:</p>" + _names(absent)
        )
    if rare:
        parts.append(
            f"<p>In fewer than {RARE_FRAMES} frames, so that their scores say little:</p>"
            + _names([f"{r['class']} ({_plural(r['frames'], 'frame')})" for r in rare])
        )
    if report["stray_predictions"]:
        parts.append(
            "<p>The model sees some of these absent classes all the same. Every such pixel is "
            "wrong, and counts against the class that it is:</p>"
            + _names([f"{r['class']} ({_plural(r['pixels'], 'pixel')})" for r in _strays(report)])
        )
    if not absent and not rare:
        parts.append(f"<p>Nothing: every class is in at least {RARE_FRAMES} frames.</p>")
    return "\n".join(parts)


def _strays(report: Mapping[str, Any]) -> list[Any]:
    return sorted(report["stray_predictions"], key=lambda row: -row["pixels"])


def _names(names: Sequence[str]) -> str:
    return '<ul class="names">' + "".join(f"<li>{escape(n)}</li>" for n in names) + "</ul>"


def _matrix(picture: bytes) -> str:
    data = base64.b64encode(picture).decode("ascii")
    return (
        "<h2>Confusion matrix</h2>\n<p>Each row shares out the pixels of one true class over the "
        "predicted classes; the diagonal, in percent, is what was found.</p>\n"
        f'<img src="data:image/png;base64,{data}" alt="Confusion matrix, rows true classes, '
        'columns predicted classes; the table below has the scores of each class.">'
    )


def _classes(report: Mapping[str, Any]) -> str:
    total = max(1, sum(row["truth_pixels"] for row in report["per_class"]))
    ordered = sorted(
        report["per_class"],
        key=lambda r: (r["iou"] is None, not r["truth_pixels"], -(r["iou"] or 0), r["class"]),
    )
    return (
        '<h2>Classes, best first</h2>\n<div class="scroll" tabindex="0"><table>\n'
        "<caption>Grey: no truth in "
        "this data. A dash: nothing to score. Below a score stands its interval of 95 %, by "
        "drawing scenes; a class with truth in one scene has none.</caption>\n<thead><tr>"
        '<th scope="col" class="name">Class</th><th scope="col" colspan="2" class="name">IoU</th>'
        '<th scope="col">Boundary IoU</th>'
        '<th scope="col">Recall</th><th scope="col">Precision</th>'
        '<th scope="col">Share of pixels</th><th scope="col">Frames</th></tr></thead>\n<tbody>\n'
        + "\n".join(_class_row(row, total) for row in ordered)
        + "\n</tbody></table></div>"
    )


def _class_row(row: Mapping[str, Any], total: int) -> str:
    width = 100 * (row["iou"] or 0)
    bar = f'<span class="track"><span class="fill" style="width:{width:.1f}%"></span></span>'
    kind = "" if row["truth_pixels"] else ' class="none"'
    rare = ' class="mark" title="rare"' if 0 < row["frames"] < RARE_FRAMES else ""
    return (
        f'<tr{kind}><th scope="row">{escape(row["class"])}</th>'
        f'<td class="bar" aria-hidden="true">{bar if row["iou"] is not None else ""}</td>'
        + "".join(
            scored(row[name], row[f"{name}_interval"])
            for name in ("iou", "boundary_iou", "recall", "precision")
        )
        + f"<td>{_share(row['truth_pixels'], total)}</td>"
        f"<td{rare}>{row['frames']}</td></tr>"
    )


_SLICES = {"camera": "Camera", "scene": "Scene"}


def _slices(report: Mapping[str, Any]) -> str:
    """Scores by camera, scene and tags, worst first; nothing where there is one of each."""
    tables = [
        _slice_table(by, _SLICES.get(by, by), rows, len(report["classes"]))
        for by, rows in report["slices"].items()
        if len(rows) > 1
    ]
    if not tables:
        return ""
    return "<h2>Where it is worse</h2>\n" + "\n".join(tables)


def _slice_table(by: str, title: str, rows: Sequence[Mapping[str, Any]], classes: int) -> str:
    ordered = sorted(rows, key=lambda row: (row["miou"] is None, row["miou"] or 0, row["value"]))
    body = "\n".join(_slice_row(row, classes, drawn=by != "scene") for row in ordered)
    note, scenes = "A scene by itself has no intervals.", ""
    if by != "scene":
        note = (
            "Below a score stands its interval of 95 %, by drawing the scenes of its row alone; a "
            "row of one scene has none, and with fewer "
            f"than {_FEW_SCENES} they are a rough guide."
        )
        scenes = '<th scope="col">Scenes</th>'
    return (
        '<div class="scroll" tabindex="0"><table>\n'
        f"<caption>By {escape(by)}, worst first. Mean IoU is over the "
        "classes with truth there, so that two rows are comparable where these are the same. "
        f"{note}</caption>\n"
        f'<thead><tr><th scope="col" class="name">{escape(title)}</th>'
        '<th scope="col">Mean IoU</th>'
        f'<th scope="col">Pixel accuracy</th>{scenes}<th scope="col">Frames</th>'
        '<th scope="col">Classes with truth</th></tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def _slice_row(row: Mapping[str, Any], classes: int, *, drawn: bool) -> str:
    miou, accuracy = (
        scored(row[name], row[f"{name}_interval"]) for name in ("miou", "pixel_accuracy")
    )
    scenes = f"<td>{row['scenes']:,}</td>" if drawn else ""
    return (
        f'<tr><th scope="row">{escape(row["value"])}</th>{miou}{accuracy}{scenes}'
        f"<td>{row['frames']:,}</td><td>{len(row['classes_with_truth'])} of {classes}</td></tr>"
    )


def _disagreement(report: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    share = report["disagreement"]["mean"]
    ends = _interval(report["intervals"]["disagreement"])
    description = f"{ends}of the pixels get another class in the mirrored image"
    return [] if share is None else [("Disagreement", percent(share), description)]


def _object_sizes(report: Mapping[str, Any]) -> str:
    """The recall of objects by size; empty where no colour numbers objects."""
    if not report["object_sizes"]:
        return ""
    named = [("All", report["object_sizes"])]
    named += [(row["class"], row["object_sizes"]) for row in report["per_class"]]
    body = "\n".join(
        f'<tr><th scope="row">{escape(name)}</th><td class="left">{row["size"]}</td>'
        f"<td>{row['objects']:,}</td>{scored(row['found'], row['found_interval'])}"
        f"{scored(row['recall'], row['recall_interval'])}</tr>"
        for name, rows in named
        for row in rows
    )
    return (
        '<h2>By size of object</h2>\n<div class="scroll" tabindex="0"><table>\n'
        "<caption>Connected pixels of a "
        "numbered colour, such as &ldquo;Car 1&rdquo;: tiny below 16x16 pixels, small below 32x32, "
        "medium below 96x96. An object counts as found if half of its pixels have its class."
        '</caption>\n<thead><tr><th scope="col" class="name">Class</th>'
        '<th scope="col" class="name">Size</th><th scope="col">Objects</th>'
        '<th scope="col">Found</th><th scope="col">Pixels found</th></tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def _share(pixels: int, total: int) -> str:
    if 0 < pixels / total < 0.0001:
        return "&lt; 0.01 %"
    return f"{100 * pixels / total:.2f} %" if pixels else "&ndash;"


def _plural(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
