"""deploy/compose.yaml by the schema of the Compose specification, and what it cannot say."""

import copy
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from tests.deploy.deployed import DEPLOY

_PACKAGE = find_spec("check_jsonschema")  # which has the schema; its own program is not asked
assert _PACKAGE is not None
assert _PACKAGE.origin is not None
_SCHEMA = Path(_PACKAGE.origin).parent / "builtin_schemas" / "vendor" / "compose-spec.json"
_PROFILES = {"", "watch", "portal"}
Json = dict[str, Any]


def compose() -> Json:
    """The file, with its anchors resolved."""
    content: Json = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    return content


def profiles(service: Json) -> set[str]:
    """Profiles that start a service; the empty one is none."""
    return set(service.get("profiles", [""]))


def missing(services: Json) -> list[tuple[str, str]]:
    """Services, and what they wait for that a profile does not start beside them."""
    return [
        (name, other)
        for name, service in services.items()
        for other in service.get("depends_on", ())
        if other not in services or not profiles(services[other]) & {"", *profiles(service)}
    ]


def test_compose_is_of_the_specification() -> None:
    """Services of each profile; a key that the specification lacks is refused in any of them."""
    schema = jsonschema_rs.validator_for(json.loads(_SCHEMA.read_text("utf-8")))
    assert [error.message for error in schema.iter_errors(compose())] == []
    services = compose()["services"]
    assert set().union(*map(profiles, services.values())) == _PROFILES
    for name in services:
        wrong = compose()
        wrong["services"][name]["mem_limits"] = "1g"
        (error,) = schema.iter_errors(wrong)
        assert error.instance_path == ["services", name]
        assert "'mem_limits' was unexpected" in error.message


@pytest.mark.parametrize(
    ("service", "key", "value"),
    [
        ("watcher", "profiles", "watch"),
        ("postgres", "healthcheck", {"test": ["CMD", "true"], "retires": 3}),
        ("server", "depends_on", {"postgres": {"condition": "service_healty"}}),
        ("tensorboard", "volumes", [{"type": "volume", "target": "/jobs", "read-only": True}]),
    ],
)
def test_wrong_values_are_refused(service: str, key: str, value: Any) -> None:
    """Within services, too."""
    schema = jsonschema_rs.validator_for(json.loads(_SCHEMA.read_text("utf-8")))
    wrong = compose()
    wrong["services"][service][key] = value
    assert not schema.is_valid(wrong)


def test_profiles_start_what_their_services_wait_for() -> None:
    """With the services that have no profile, which always start; the schema cannot say it."""
    services = compose()["services"]
    assert sum(len(service.get("depends_on", ())) for service in services.values()) >= 6
    assert missing(services) == []
    wrong = copy.deepcopy(services)
    wrong["server"]["depends_on"] = ["watcher", "postgres"]
    wrong["jupyter"]["depends_on"] = ["tensorboard", "servers"]
    assert missing(wrong) == [("server", "watcher"), ("jupyter", "servers")]
