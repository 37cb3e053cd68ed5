"""Questions on a home without a server, as commands ask them, beside DuckDB over the same files.

    python -m benchmarks.home_questions [--frames 1000000] [--home HOME] [--rounds 3]
        [--beside PROGRAM] [--only NAME ...]

Each answer is a process of its own: `framesift` with its start, and Python that imports DuckDB and
runs a statement written by hand over the home's Parquet files. Both write their answer to a file
that nobody reads. Seconds of CPU (user and system), the median of --rounds, and the peak of
resident memory, in turns; with --beside those of another version's program `framesift`, too.
The first line is the start alone: `sql` with a statement that reads no table. The ratio of the
question itself is of what a question takes beyond it; `select` and `classes` import more than
`sql` does, which counts as theirs.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from api.settings import Settings
from api.workspace import Workspace
from benchmarks.catalog_scale import CLASS_LIST, fill_home
from benchmarks.query_statements import SHARE, SIX_TABLES
from ingest.labels.class_list import ClassList

_BY_HAND = """
import sys
import duckdb

folder, statement, target = sys.argv[1:]
connection = duckdb.connect()
for table in ("files", "class_pixels", "tags_frame"):
    connection.execute(f"CREATE VIEW {table} AS FROM read_parquet('{folder}/{table}/*.parquet')")
connection.execute(f"COPY ({statement}) TO {target}")
"""

_TOP = (
    "select filename, car from metaocean_view where car is not null "
    "order by int(car) desc, filename fetch first 100 rows only"
)
_BY_CAMERA = (
    "select camera, count(*), sum(int(car)) from metaocean_view "
    "where camera is not null and car is not null group by camera"
)

_CSV = "'/dev/null' (FORMAT csv)"
_JSON = "'/dev/null' (FORMAT json, ARRAY true)"

_RANGE = ("--range", "car=10000:20000")
_IN_RANGE = "WHERE t.labelled = 1 AND car BETWEEN 10000 AND 20000"


@dataclass(frozen=True)
class Question:
    """A question in both words."""

    name: str
    words: tuple[str, ...]
    """The command's."""
    by_hand: str
    """DuckDB's statement over `files`, `class_pixels` and `tags_frame`."""
    target: str = _CSV
    """Where DuckDB copies the rows, and in which format."""


_START = Question("start alone", ("sql", "values 1"), "SELECT 1")

_LEAST_S = 0.05
"""CPU beyond the start of which a ratio says something [s]."""


def questions(classes: Sequence[str], scratch: Path) -> list[Question]:
    """Every question."""
    frames = (
        "SELECT f.fkey, f.platform, f.cluster, f.datasource, f.path, f.filename, t.scene, "
        "t.camera, t.frame_number, t.image_width, t.image_height, "
        "substr(f.fkey, length(f.cluster || f.datasource || ':::')) AS image_file, t.label_file, "
        f"f.size AS image_size, l.size AS label_size, {', '.join(classes)} FROM files AS f "
        "JOIN class_pixels AS c ON c.fkey = f.fkey JOIN tags_frame AS t ON t.fkey = f.fkey "
        "LEFT JOIN files AS l ON l.fkey = f.cluster || ':' || f.datasource || ':' || t.label_file "
    )
    pixels = " + ".join(f"coalesce({tag}, 0)" for tag in (*classes, "unknown_pixels"))
    sums = ", ".join(
        f"sum(({tag} > 0)::INTEGER), sum({tag}), sum(pixels * ({tag} > 0)::INTEGER)"
        for tag in classes
    )
    at = "[0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0]"
    quantiles = ", ".join(
        f"quantile_disc({tag}, {at}) FILTER ({tag} > 0), "
        f"quantile_disc({tag} / pixels, {at}) FILTER ({tag} > 0)"
        for tag in classes
    )
    by_camera = (
        f"FROM (SELECT c.*, t.camera, {pixels} AS pixels FROM class_pixels AS c "
        "JOIN tags_frame AS t ON t.fkey = c.fkey WHERE t.labelled = 1) "
        "GROUP BY GROUPING SETS ((), (camera))"
    )
    parquet = str(scratch / "frames.parquet")
    return [
        Question(
            "number of files",
            ("sql", "select count(*) from metaocean"),
            "SELECT count(*) FROM files",
        ),
        Question(
            "the redbook's ranges",
            ("sql", SIX_TABLES),
            "SELECT platform, datasource, filename FROM files AS f JOIN class_pixels AS c "
            "ON c.fkey = f.fkey WHERE front = 1 AND center = 1 AND car BETWEEN 10000 AND 20000 "
            "AND bicycle BETWEEN 3000 AND 5000 AND pedestrian BETWEEN 5000 AND 6000",
        ),
        Question(
            "share of a class",
            ("sql", SHARE),
            "SELECT sum(rd_normal_street) / (count(rd_normal_street) * 1920 * 1208 / 100) "
            "FROM class_pixels",
        ),
        Question(
            "top 100",
            ("sql", _TOP),
            "SELECT filename, car FROM files AS f JOIN class_pixels AS c ON c.fkey = f.fkey "
            "WHERE car IS NOT NULL ORDER BY car DESC, filename LIMIT 100",
        ),
        Question(
            "pixels by camera",
            ("sql", _BY_CAMERA),
            "SELECT camera, count(*), sum(car) FROM class_pixels AS c "
            "JOIN tags_frame AS t ON t.fkey = c.fkey "
            "WHERE camera IS NOT NULL AND car IS NOT NULL GROUP BY camera",
        ),
        Question(
            "100 first frames",
            ("select", *_RANGE, "--limit", "100"),
            f"{frames} {_IN_RANGE} ORDER BY f.fkey LIMIT 100",
        ),
        Question(
            "94,000 frames, CSV",
            ("select", *_RANGE, "--format", "csv"),
            f"{frames} {_IN_RANGE} ORDER BY f.fkey",
        ),
        Question(
            "94,000 frames, JSON",
            ("select", *_RANGE, "--json"),
            f"{frames} {_IN_RANGE} ORDER BY f.fkey",
            _JSON,
        ),
        Question(
            "94,000 frames, Parquet",
            ("select", *_RANGE, "--format", "parquet", "--out", parquet),
            f"{frames} {_IN_RANGE} ORDER BY f.fkey",
            f"'{parquet}' (FORMAT parquet, COMPRESSION zstd)",
        ),
        Question(
            "three columns of these",
            ("select", *_RANGE, "--columns", "fkey,car,sky", "--format", "csv"),
            f"SELECT f.fkey, car, sky FROM files AS f JOIN class_pixels AS c ON c.fkey = f.fkey "
            "JOIN tags_frame AS t ON t.fkey = f.fkey LEFT JOIN files AS l "
            "ON l.fkey = f.cluster || ':' || f.datasource || ':' || t.label_file "
            f"{_IN_RANGE} AND (t.label_file IS NULL OR l.fkey IS NOT NULL) ORDER BY f.fkey",
        ),
        Question(
            "classes",
            ("classes", "--json"),
            f"SELECT count(*), {sums} FROM (SELECT *, {pixels} AS pixels FROM class_pixels)",
        ),
        Question(
            "classes by camera",
            ("classes", "--by", "camera", "--json"),
            f"SELECT camera, count(*), {sums} {by_camera}",
        ),
        Question(
            "classes by camera, quantiles",
            ("classes", "--by", "camera", "--quantiles", "--json"),
            f"SELECT camera, count(*), {sums}, {quantiles} {by_camera}",
        ),
        Question(
            "a histogram",
            ("histogram", "car", "--json"),
            "SELECT car // 25000, count(*) FROM class_pixels GROUP BY 1",
        ),
    ]  # fmt: skip


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--home", type=Path, help="a home with such frames, in place of a new one")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--beside", type=Path, help="another version's program")
    parser.add_argument("--only", nargs="*", default=())
    options = parser.parse_args()
    classes = ClassList.from_colours(json.loads(CLASS_LIST.read_bytes()))
    with tempfile.TemporaryDirectory() as scratch:
        home = options.home or _made(Path(scratch, "home"), classes, options.frames)
        program = shutil.which("framesift", path=str(Path(sys.executable).parent))
        programs = [str(program), *([str(options.beside)] if options.beside else [])]
        before = " before | MB |" if options.beside else ""
        print(f"{options.frames:,} frames; medians of {options.rounds}, CPU s and MB of memory\n")
        print(f"| a question | Framesift | MB | DuckDB | MB | ratio | itself |{before}")
        print(f"|---|---|---|---|---|---|---|{'---|---|' if before else ''}", flush=True)
        start = _runs(_START, home, programs, options.rounds)
        print(_line(_START, start, start), flush=True)
        for question in questions(classes.tags, Path(scratch)):
            if not options.only or question.name in options.only:
                runs = _runs(question, home, programs, options.rounds)
                print(_line(question, runs, start), flush=True)


def _made(home: Path, classes: ClassList, frames: int) -> Path:
    """A new home with drawn frames."""
    workspace = Workspace(Settings(home=home, compact_files=0), on_making=lambda _: None)
    names = dict(zip(classes.tags, classes.classes, strict=True))
    fill_home(workspace, names, frames)
    return home


_Runs = list[list[tuple[float, float]]]
"""CPU s and MB of each way, by rounds: Framesift, DuckDB by hand, other versions."""


def _runs(question: Question, home: Path, programs: Sequence[str], rounds: int) -> _Runs:
    """The question asked in all ways, in turns."""
    data = str(home / "catalog" / "data" / "main")
    by_hand = [sys.executable, "-c", _BY_HAND, data, question.by_hand, question.target]
    ways = [[programs[0], *question.words], by_hand]
    ways += [[program, *question.words] for program in programs[1:]]
    return [[_run(way, home) for way in ways] for _ in range(rounds)]


def _line(question: Question, runs: _Runs, start: _Runs) -> str:
    """The question's line of the table."""
    cells, of_start = _medians(runs), _medians(start)
    shown = [f"{seconds:.2f} | {megabytes:,.0f}" for seconds, megabytes in cells]
    ratio = median(run[0][0] / run[1][0] for run in runs)
    beyond = [cell[0] - one[0] for cell, one in zip(cells, of_start, strict=True)]
    itself = f"{beyond[0] / beyond[1]:.2f}" if beyond[1] > _LEAST_S else ""
    return f"| {' | '.join([question.name, *shown[:2], f'{ratio:.2f}', itself, *shown[2:]])} |"


def _medians(runs: _Runs) -> list[tuple[float, float]]:
    """CPU s and MB of each way."""
    return [
        (median(seconds for seconds, _ in way), median(megabytes for _, megabytes in way))
        for way in zip(*runs, strict=True)
    ]


def _run(command: Sequence[str], home: Path) -> tuple[float, float]:
    """CPU time of a process [s], and the most memory that it had [MB]."""
    environment = {**os.environ, "FRAMESIFT_HOME": str(home)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command[:2])} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e3


if __name__ == "__main__":
    main()
