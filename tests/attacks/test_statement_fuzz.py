"""Half a minute of statements that are nearly right, the same at every run."""

import random
import time
from pathlib import Path

from tests.attacks.arena import SCENE, arena
from tests.attacks.conftest import Watched
from tests.pipeline.homes import SAMPLE
from tests.query.test_attacks_fuzz import OTHERS, PIECES, WORDS
from tests.query.test_golden import STATEMENTS as REAL

SQL = "/db2whrest/v1/sql_query"
SECONDS, MOST = 30, 1_500
HIDDEN = sorted(
    folder.name
    for folder in (SAMPLE / "camera_lidar_semantic").iterdir()
    if folder.is_dir() and folder.name != SCENE
)


def _mutated(drawn: random.Random) -> str:
    words = drawn.choice([*REAL, *OTHERS]).split()
    for _ in range(drawn.randint(1, 4)):
        position = drawn.randrange(len(words) + 1)
        kind = drawn.choice(["in", "piece", "out", "twice", "swap"])
        if kind in ("in", "piece"):
            words.insert(position, drawn.choice(WORDS if kind == "in" else PIECES))
        elif words[position:] and kind == "out":
            del words[position]
        elif words[position:] and kind == "twice":
            words.insert(position, words[position])
        elif words[position:]:
            other = drawn.randrange(len(words))
            words[position], words[other] = words[other], words[position]
    return " ".join(words)


def test_statements_that_are_nearly_right(home: Path, watched: Watched) -> None:
    """Rows of the caller's scene or a refusal; never an error of ours, nor others that wait."""
    drawn, until = random.Random(13), time.monotonic() + SECONDS
    variables = {"FRAMESIFT_QUERY_TIMEOUT_S": "5"}
    with (
        arena(home, variables=variables, memory_mb=4096) as server,
        watched(server, most_mb=2600),
        server.client("read") as client,
    ):
        for _ in range(MOST):
            statement = _mutated(drawn)
            answer = client.post(SQL, content=statement.encode("utf-8", "replace"))
            assert answer.status_code in (200, 202, 400), (statement, answer.text[:300])
            leaked = [scene for scene in HIDDEN if scene in answer.text]
            assert answer.status_code != 200 or all(scene in statement for scene in leaked)
            if time.monotonic() > until:
                break
