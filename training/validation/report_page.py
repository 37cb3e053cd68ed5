"""A validation's report as one web page: no script, no network, everything inside.

Colours are variables, so that the page follows the reader's light or dark setting; the picture
of the matrix keeps its white paper in both.
"""

import base64
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

RARE_FRAMES = 3
"""A class in fewer frames than this is named as rare: its IoU says little."""

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
img, svg { max-width: 100%; height: auto; display: block; }
img { background: #ffffff; border: 1px solid var(--line); border-radius: .5rem; }
svg text { fill: var(--quiet); font: 12px system-ui, sans-serif; }
"""


def report_page(
    report: Mapping[str, Any], picture: bytes, curve: Sequence[Mapping[str, Any]]
) -> str:
    """The page.

    Args:
        report: As `training.validation.report.build_report` describes it.
        picture: The confusion matrix, PNG.
        curve: The lines of the model's metrics.jsonl; may be empty.

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
        _lacking(report),
        _matrix(picture),
        _classes(report),
        _curve(curve),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(part for part in parts if part)
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
    baseline = report["baseline"]
    always = escape(str(baseline["class"]))
    ignored = report["ignored_pixels"]
    known = sum(row["truth_pixels"] for row in report["per_class"])
    cells = [
        (
            "Mean IoU",
            percent(report["miou"]),
            f"always “{always}”: {percent(baseline['miou'])}",
        ),
        (
            "Pixel accuracy",
            percent(report["pixel_accuracy"]),
            f"always “{always}”: {percent(baseline['pixel_accuracy'])}",
        ),
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
        "classes that occur in truth or prediction, of pixels found / (pixels of the class or "
        "taken for it). Predictions are compared at the labels&rsquo; full resolution.</p>"
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
    if not absent and not rare:
        parts.append(f"<p>Nothing: every class is in at least {RARE_FRAMES} frames.</p>")
    return "\n".join(parts)


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
        '<h2>Classes, best first</h2>\n<div class="scroll"><table>\n<caption>Grey: no truth in '
        "this data. A dash: nothing to score.</caption>\n<thead><tr>"
        '<th scope="col" class="name">Class</th><th scope="col" colspan="2" class="name">IoU</th>'
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
        f"<td>{percent(row['iou'])}</td><td>{percent(row['recall'])}</td>"
        f"<td>{percent(row['precision'])}</td><td>{_share(row['truth_pixels'], total)}</td>"
        f"<td{rare}>{row['frames']}</td></tr>"
    )


def _curve(curve: Sequence[Mapping[str, Any]]) -> str:
    """The loss over the steps as a drawing; nothing for fewer than two points."""
    if len(curve) < 2:
        return ""
    width, height, left, bottom = 720.0, 240.0, 48.0, 28.0
    last, top = max(float(p["step"]) for p in curve), max(float(p["loss"]) for p in curve)
    if not (last > 0 and top > 0):
        return ""

    def across(step: float) -> float:
        return left + (width - left - 12) * step / last

    def down(loss: float) -> float:
        return 10 + (height - bottom - 10) * (1 - loss / top)

    points = " ".join(f"{across(float(p['step'])):.1f},{down(float(p['loss'])):.1f}" for p in curve)
    lines = "".join(
        f'<line x1="{left}" x2="{width - 12}" y1="{down(top * part):.1f}" '
        f'y2="{down(top * part):.1f}" stroke="var(--line)"/>'
        f'<text x="{left - 6}" y="{down(top * part) + 4:.1f}" text-anchor="end">'
        f"{top * part:.2f}</text>"
        for part in (0.0, 0.5, 1.0)
    )
    steps = "".join(
        f'<text x="{across(last * part):.1f}" y="{height - 8}" text-anchor="{anchor}">'
        f"{last * part:,.0f}</text>"
        for part, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end"))
    )
    first_loss, last_loss = float(curve[0]["loss"]), float(curve[-1]["loss"])
    return (
        "<h2>Training loss</h2>\n"
        f"<p>From {first_loss:.3f} to {last_loss:.3f} in {last:,.0f} steps, over all workers; "
        "pixels of rare classes count more in it.</p>\n"
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'aria-label="Training loss by step, from {first_loss:.3f} to {last_loss:.3f}">{lines}'
        f'<polyline points="{points}" fill="none" stroke="var(--bar)" stroke-width="2"/>'
        f"{steps}</svg>"
    )


def percent(share: float | None) -> str:
    """A share as people read it, "12.3 %"; a dash (HTML) for none."""
    return "&ndash;" if share is None else f"{100 * share:.1f} %"


def _share(pixels: int, total: int) -> str:
    if 0 < pixels / total < 0.0001:
        return "&lt; 0.01 %"
    return f"{100 * pixels / total:.2f} %" if pixels else "&ndash;"


def _plural(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
