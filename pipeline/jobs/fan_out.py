"""One validation as shards that run at once, and a merge."""

import sys
from collections.abc import Sequence

from pipeline.jobs.request import JobPaths, Stage


def validation_stages(evaluate: Sequence[str], paths: JobPaths, shards: int) -> tuple[Stage, ...]:
    """The stages of a validation: one command per shard, then the merge into a report.

    Args:
        evaluate: The evaluating program with all flags but the shard's.
        paths: The job's files.
        shards: Into how many parts the split is divided.
    """
    parts = tuple(
        (*evaluate, "--shard", str(index), "--shards", str(shards)) for index in range(shards)
    )
    merge = (
        sys.executable, "-P", "-m", "training.merge_scores",
        "--results_dir", str(paths.results), "--shards", str(shards), "--out", str(paths.report),
    )  # fmt: skip
    return Stage("validate", parts, independent=True), Stage("merge", (merge,))
