"""/policyengine/v1/applications: what inspects files, by the names that policies give as agent.

The product's applications are programs of their own that hear of their work from Kafka. Here they
are extractors, which are installed where the server and its jobs run.
"""

from typing import Any

from fastapi import Response
from fastapi.concurrency import run_in_threadpool

from api.discover.replies import discover_router, in_json
from catalog.errors import InvalidInput, NotFound
from ingest.extractors.registry import extractor_named, known_extractors
from pipeline.policies.actions import ACTION_IDS

router = discover_router("policyengine")


@router.get("/action_ids")
async def get_action_ids() -> Response:
    """What policies can do."""
    return in_json(list(ACTION_IDS))


@router.get("/applications")
async def get_applications() -> Response:
    """Every application: the extractors that are installed."""
    names = sorted(await run_in_threadpool(known_extractors))
    return in_json([_document(name) for name in names])


@router.get("/applications/{application}/schema")
async def get_schema(application: str) -> Response:
    """What a policy may ask of an application: the tags that it reads from files."""
    if application not in known_extractors():
        known = ", ".join(sorted(known_extractors()))
        raise NotFound("application", application[:80], f"there are {known}")
    extractor = await run_in_threadpool(extractor_named, application)
    return in_json({"extract_tags": list(extractor.columns)})


@router.post("/applications")
async def post_application() -> Response:
    """Refused: nothing can be installed over REST."""
    raise InvalidInput(
        "applications are extractors that are installed on this server, by the entry point "
        "framesift.extractors: GET /policyengine/v1/applications lists them"
    )


def _document(name: str) -> dict[str, Any]:
    return {"agent": name, "action_id": "DEEPINSPECT", "action_params": ["extract_tags"]}
