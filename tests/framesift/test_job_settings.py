"""The client's docstrings name every setting that a request for a job may have."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

import framesift
from api.schemas.new_jobs import (
    NewPrediction,
    NewPreflight,
    NewProgram,
    NewScaling,
    NewTraining,
    NewValidation,
)
from pipeline.runs.job_orders import JOB_ORDERS
from pipeline.runs.setting import rows

JOBS = framesift.Client("http://127.0.0.1:1").jobs
METHODS: dict[str, Callable[..., Any]] = {
    "train": JOBS.train, "validate": JOBS.validate, "predict": JOBS.predict, "run": JOBS.run,
    "preflight": JOBS.preflight, "scaling": JOBS.scaling,
}  # fmt: skip
BODIES: dict[str, type[BaseModel]] = {
    "train": NewTraining, "validate": NewValidation, "predict": NewPrediction, "run": NewProgram,
    "preflight": NewPreflight, "scaling": NewScaling,
}  # fmt: skip


@pytest.mark.parametrize("kind", JOB_ORDERS)
def test_every_setting_is_named(kind: str) -> None:
    """And each is a field of the request."""
    words = {*re.findall(r"\w+", METHODS[kind].__doc__ or "")}
    settings = {row.name for row in rows(JOB_ORDERS[kind]) if row.setting.body_words}
    assert settings - words == set()
    assert settings <= BODIES[kind].model_fields.keys()
    assert len(settings) > 8
