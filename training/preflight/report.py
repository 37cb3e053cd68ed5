"""The result of a preflight: figures, tables and warnings for its job, and all of it as JSON."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from training.preflight.bandwidth import shown_us, size_text
from training.preflight.read_rate import rate_mb_per_s
from training.preflight.synthetic import Synthetic
from training.preflight.verdicts import OK, Findings, Verdict

Table = dict[str, Any]
"""A table of a job's metrics: title, columns, rows."""


def result(
    findings: Findings, lines: Sequence[Verdict], synthetic: Synthetic | None
) -> dict[str, Any]:
    """What `framesift jobs show` and `jobs compare` show: figures by name, tables and warnings."""
    figures: dict[str, Any] = {
        "ranks": len(findings.ranks),
        "nodes": len(findings.nodes),
        "exchange": findings.transport,
    }
    if len(findings.ranks) > 1:
        largest, smallest = findings.timings[-1], findings.timings[0]
        figures |= {
            "allreduce_size_bytes": largest.size_bytes,
            "allreduce_busbw_gb_per_s": round(largest.busbw, 4),
            "allreduce_latency_us": round(smallest.seconds * 1e6, 1),
            "slowest_pair_gb_per_s": round(min(each.gb_per_s for each in findings.pairs), 4),
            "clock_difference_ms": round(
                max(abs(each.ahead_s) + each.bound_s for each in findings.clocks) * 1e3, 3
            ),
        }
    for each in findings.reads:
        figures[f"{each.place}_mb_per_s"] = round(rate_mb_per_s(each.reads), 1)
    if synthetic is not None:
        figures |= {
            "images_per_s": round(synthetic.images_per_s, 2),
            "efficiency": round(synthetic.efficiency, 4),
        }
    return {
        **figures,
        "warnings": [each.line for each in lines if each.level != OK],
        "tables": tables(findings, lines, synthetic),
    }


def tables(
    findings: Findings, lines: Sequence[Verdict], synthetic: Synthetic | None
) -> list[Table]:
    """The tables that show it: verdicts, allreduce, pairs, ranks."""
    made = [_table("Verdicts", ("", "verdict"), [(each.level, each.line) for each in lines])]
    if len(findings.ranks) > 1:
        made += [
            _table(
                "Allreduce",
                ("size", "time [us]", "algbw [GB/s]", "busbw [GB/s]"),
                [
                    (
                        size_text(each.size_bytes),
                        shown_us(each.seconds),
                        f"{each.algbw:.2f}",
                        f"{each.busbw:.2f}",
                    )
                    for each in findings.timings
                ],
            ),
            _table(
                "Pairs",
                ("from", "to", "size", "GB/s"),
                [
                    (each.source, each.target, size_text(each.size_bytes), f"{each.gb_per_s:.2f}")
                    for each in findings.pairs
                ],
            ),
        ]
    made.append(_ranks(findings, synthetic))
    return made


def document(
    findings: Findings, lines: Sequence[Verdict], synthetic: Synthetic | None
) -> dict[str, Any]:
    """All that was found, for programs."""
    return {
        "way": findings.way,
        "transport": findings.transport,
        "allreduce": [
            {**asdict(each), "algbw_gb_per_s": each.algbw, "busbw_gb_per_s": each.busbw}
            for each in findings.timings
        ],
        "pairs": [{**asdict(each), "gb_per_s": each.gb_per_s} for each in findings.pairs],
        "clocks": [asdict(each) for each in findings.clocks],
        "reads": [
            {**asdict(each), "mb_per_s": rate_mb_per_s(each.reads)} for each in findings.reads
        ],
        "ib_write_bw_gbit_per_s": dict(findings.infiniband),
        "nccl": asdict(findings.nccl),
        "synthetic": None
        if synthetic is None
        else {
            "images_per_s": synthetic.images_per_s,
            "efficiency": synthetic.efficiency,
            "ranks": [asdict(each) for each in synthetic.ranks],
        },
        "ranks": list(findings.ranks),
        "verdicts": [asdict(each) for each in lines],
    }


def text_lines(table: Table) -> list[str]:
    """A table for a log."""
    rows = [table["columns"], *([str(cell) for cell in row] for row in table["rows"])]
    widths = [max(len(row[at]) for row in rows) for at in range(len(table["columns"]))]
    return [
        f"# {table['title']}",
        *(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ),
    ]


def _ranks(findings: Findings, synthetic: Synthetic | None) -> Table:
    columns = ["rank", "node", "device", "clock ahead [ms]"]
    columns += [f"{each.place} [MB/s]" for each in findings.reads]
    columns += [] if synthetic is None else ["images/s alone", "images/s"]
    rows = []
    for number, rank in enumerate(findings.ranks):
        clock = findings.clocks[number] if findings.clocks else None
        row = [
            str(rank["rank"]),
            rank["node"],
            rank["device"],
            "" if clock is None else f"{clock.ahead_s * 1e3:.2f} +/- {clock.bound_s * 1e3:.2f}",
            *(f"{rate_mb_per_s([each.reads[number]]):,.0f}" for each in findings.reads),
        ]
        if synthetic is not None:
            trained = synthetic.ranks[number]
            row += [f"{trained.alone_images_per_s:.1f}", f"{trained.images_per_s:.1f}"]
        rows.append(row)
    return _table("Ranks", columns, rows)


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    return {"title": title, "columns": list(columns), "rows": [list(row) for row in rows]}
