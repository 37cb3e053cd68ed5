"""What a container's variables, words and volumes are, from a pod's specification."""

import base64
import re
from pathlib import Path

from tests.kubernetes_stand_in.failures import Json
from tests.kubernetes_stand_in.store import Store

_REFERENCE = re.compile(r"\$\$|\$\(([^()]+)\)")
_KEYED = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")


class NotThere(Exception):
    """A secret, config map or key that a container needs."""


def expand(text: str, variables: dict[str, str]) -> str:
    """$(NAME) by its value; $$ is a $; names that are not known stay."""

    def value(found: re.Match[str]) -> str:
        return "$" if found[1] is None else variables.get(found[1], found[0])

    return _REFERENCE.sub(value, text)


def environment(store: Store, pod: Json, container: Json, first: dict[str, str]) -> dict[str, str]:
    """All variables of a container, over those of its image.

    Raises:
        NotThere: What one of them comes from.
    """
    variables = dict(first)
    for source in container.get("envFrom", ()):
        which = "secretRef" if "secretRef" in source else "configMapRef"
        content = _content(store, pod, which.removesuffix("Ref"), source[which])
        for name, value in content.items():
            variables[source.get("prefix", "") + name] = value.decode()
    for each in container.get("env", ()):
        source = each.get("valueFrom")
        if source is None:
            variables[each["name"]] = expand(each.get("value", ""), variables)
            continue
        if "fieldRef" in source:
            variables[each["name"]] = field(pod, source["fieldRef"]["fieldPath"])
            continue
        which = next(iter(source)).removesuffix("KeyRef")
        reference = next(iter(source.values()))
        content = _content(store, pod, which, reference)
        if reference["key"] in content:
            variables[each["name"]] = content[reference["key"]].decode()
        elif not reference.get("optional"):
            word = {"secret": "Secret", "configMap": "ConfigMap"}[which]
            namespace = pod["metadata"]["namespace"]
            raise NotThere(
                f"couldn't find key {reference['key']} in {word} {namespace}/{reference['name']}"
            )
    return variables


def field(pod: Json, path: str) -> str:
    """A field of a pod, as the downward API gives it."""
    if keyed := _KEYED.fullmatch(path):
        return str((pod["metadata"].get(keyed[1]) or {}).get(keyed[2], ""))
    value: object = pod
    for name in path.split("."):
        value = value.get(name, "") if isinstance(value, dict) else ""
    if isinstance(value, dict):
        return "\n".join(f'{name}="{text}"' for name, text in value.items())
    return str(value)


def _content(store: Store, pod: Json, which: str, reference: Json) -> dict[str, bytes]:
    kind = {"secret": "Secret", "configMap": "ConfigMap"}[which]
    item = store.get(kind, reference["name"], pod["metadata"]["namespace"])
    if item is None:
        if reference.get("optional"):
            return {}
        raise NotThere(f'{kind.lower()} "{reference["name"]}" not found')
    content = {name: value.encode() for name, value in (item.get("stringData") or {}).items()}
    for name, value in (item.get("data") or {}).items():
        content[name] = base64.b64decode(value) if kind == "Secret" else value.encode()
    for name, value in (item.get("binaryData") or {}).items():
        content[name] = base64.b64decode(value)
    return content


def write_volume(store: Store, pod: Json, volume: Json, folder: Path, token: str) -> None:
    """Put into a folder what a volume of the API's objects holds.

    Raises:
        NotThere: One of those objects.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if "projected" in volume:
        sources, mode = volume["projected"]["sources"], volume["projected"].get("defaultMode")
    else:
        (name,) = (each for each in volume if each != "name")
        source = dict(volume[name])
        if "secretName" in source:
            source["name"] = source.pop("secretName")
        sources, mode = [{name: source}], source.get("defaultMode")
    for source in sources:
        (kind,) = source
        given = source[kind]
        for path, content, own in _files(store, pod, kind, given, token):
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            file.chmod(own or mode or 0o644)


def _files(
    store: Store, pod: Json, kind: str, given: Json, token: str
) -> list[tuple[str, bytes, int | None]]:
    if kind == "serviceAccountToken":
        return [(given["path"], token.encode(), None)]
    if kind == "downwardAPI":
        return [
            (each["path"], field(pod, each["fieldRef"]["fieldPath"]).encode(), each.get("mode"))
            for each in given["items"]
        ]
    content = _content(store, pod, kind, given)
    if "items" not in given:
        return [(name, value, None) for name, value in content.items()]
    missing = [each["key"] for each in given["items"] if each["key"] not in content]
    if missing and not given.get("optional"):
        raise NotThere(f"references non-existent {kind.lower()} key: {missing[0]}")
    return [
        (each["path"], content[each["key"]], each.get("mode"))
        for each in given["items"]
        if each["key"] in content
    ]
