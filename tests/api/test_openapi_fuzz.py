"""Requests made from the OpenAPI document against a real server: nothing breaks, all is as told."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.api.documents import openapi_document
from tests.api.servers import serving
from tests.pipeline.homes import open_home
from tests.pipeline.test_datasets import make

pytestmark = pytest.mark.wide

EXAMPLES = 3
"""Requests for each operation, of its schema and not of it."""

CHECKS = [
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]

DOCUMENT = openapi_document()
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)
OPERATIONS = [
    (method, path)
    for path, path_item in DOCUMENT["paths"].items()
    for method in path_item
    # tests/api/test_v1_jobs.py follows events; tests/api/test_methods.py compares HEAD with GET.
    if not path.endswith("/events") and method != "head"
]


@pytest.fixture(scope="module")
def url(shared_home: Path) -> Iterator[str]:
    """URL of a server of the sample frames, with the dataset "all"."""
    workspace = open_home(shared_home)
    make(workspace, "all", split="train=0.75,validation=0.25")
    workspace.close()
    # Jobs that are begun outlive the server: none can be begun where their folder cannot be made.
    (shared_home / "jobs").touch()
    with serving(shared_home, variables={"FRAMESIFT_LOCK_WAIT_S": "5"}) as (address, _):
        yield address


@pytest.mark.hypothesis
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_every_operation(url: str, method: str, path: str, mode: GenerationMode) -> None:
    """No 500, no hang; status, content type and body as the document says."""
    operation = SCHEMA[path][method]

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
    def ask(case: Any) -> None:
        answer = case.call(base_url=url, timeout=300)
        assert answer.status_code != 500, answer.text
        case.validate_response(answer, checks=CHECKS)

    with suppress(Unsatisfiable):  # nothing can be wrong of a request that holds nothing
        ask()
