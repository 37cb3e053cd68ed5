"""Objects as YAML, for people and kubectl."""

from collections.abc import Mapping
from typing import Any


def yaml_text(thing: Mapping[str, Any]) -> str:
    """An object as a YAML document, its fields in their order."""
    import yaml  # 30 ms, which submitting does without

    text: str = yaml.safe_dump(thing, sort_keys=False, allow_unicode=True, width=1000)
    return text
