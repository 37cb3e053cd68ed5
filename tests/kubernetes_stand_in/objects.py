"""What the API server adds to objects, and what it refuses besides a schema's faults."""

import re
from collections.abc import Iterable

from tests.kubernetes_stand_in.failures import (
    Cause,
    Failure,
    Json,
    invalid,
    not_an_object,
    required,
    unsupported,
)
from tests.kubernetes_stand_in.kinds import Kind
from tests.kubernetes_stand_in.quantities import amount

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_QUALIFIED = re.compile(r"([a-z0-9.-]{1,253}/)?([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]")
_ENVIRONMENT = re.compile(r"[ -<>-~]+")
_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  "
    "or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_POD_PLAYED = {
    "activeDeadlineSeconds", "automountServiceAccountToken", "containers", "dnsPolicy",
    "enableServiceLinks", "hostname", "hostIPC", "hostNetwork", "imagePullSecrets",
    "initContainers", "nodeName", "nodeSelector", "preemptionPolicy", "priorityClassName",
    "restartPolicy", "schedulerName", "securityContext", "serviceAccount", "serviceAccountName",
    "setHostnameAsFQDN", "subdomain", "terminationGracePeriodSeconds", "tolerations", "volumes",
}  # fmt: skip
_CONTAINER_PLAYED = {
    "args", "command", "env", "envFrom", "image", "imagePullPolicy", "name", "ports", "resources",
    "securityContext", "terminationMessagePath", "terminationMessagePolicy", "volumeMounts",
    "workingDir",
}  # fmt: skip
_VOLUMES_PLAYED = {
    "configMap", "downwardAPI", "emptyDir", "persistentVolumeClaim", "projected", "secret"
}  # fmt: skip


def check_metadata(kind: Kind, item: Json) -> list[Cause]:
    """Faults of an object's name and labels."""
    metadata = item["metadata"]
    name = metadata.get("name", "")
    causes = []
    if not name:
        causes.append(required("metadata.name", "name or generateName is required"))
    elif kind.group.startswith("rbac"):
        if "/" in name or "%" in name:
            causes.append(invalid("metadata.name", name, "may not contain '/'"))
    elif kind.kind in ("Service", "Namespace"):
        causes += _label("metadata.name", name)
    elif len(name) > 253:
        causes.append(invalid("metadata.name", name, "must be no more than 253 characters"))
    elif not _SUBDOMAIN.fullmatch(name):
        causes.append(invalid("metadata.name", name, _SUBDOMAIN_RULE))
    return causes + _labels("metadata.labels", metadata.get("labels") or {})


def _label(field: str, name: str) -> list[Cause]:
    if len(name) > 63:
        return [invalid(field, name, "must be no more than 63 characters")]
    return [] if _LABEL.fullmatch(name) else [invalid(field, name, _LABEL_RULE)]


def _labels(field: str, labels: dict[str, str]) -> list[Cause]:
    causes = []
    for name, value in labels.items():
        if not _QUALIFIED.fullmatch(name):
            causes.append(invalid(field, name, "name part must consist of alphanumeric characters"))
        if len(value) > 63:
            causes.append(invalid(field, value, "must be no more than 63 characters"))
        elif not _LABEL_VALUE.fullmatch(value):
            causes.append(invalid(field, value, _LABEL_VALUE_RULE))
    return causes


def check_pod_spec(spec: Json, at: str) -> list[Cause]:
    """Faults of a pod's specification.

    Raises:
        Failure: 501 for what a real server takes and this one cannot play.
    """
    _only(spec, _POD_PLAYED, at)
    volumes = spec.get("volumes", [])
    causes = _unique(f"{at}.volumes", volumes)
    for index, volume in enumerate(volumes):
        _only(volume, {"name", *_VOLUMES_PLAYED}, f"{at}.volumes[{index}]")
        sources = len(volume) - 1
        if sources != 1:
            where = f"{at}.volumes[{index}]"
            causes.append(
                required(where, "must specify a volume type")
                if not sources
                else Cause(
                    "FieldValueForbidden",
                    where,
                    "Forbidden: may not specify more than 1 volume type",
                )
            )
    names = {volume["name"] for volume in volumes}
    if not spec.get("containers"):
        causes.append(required(f"{at}.containers"))
    for which in ("initContainers", "containers"):
        causes += _unique(f"{at}.{which}", spec.get(which, []))
        for index, container in enumerate(spec.get(which, [])):
            _only(container, _CONTAINER_PLAYED, f"{at}.{which}[{index}]")
            causes += _container(container, names, f"{at}.{which}[{index}]")
    for name in ("hostname", "subdomain"):
        if spec.get(name):
            causes += _label(f"{at}.{name}", spec[name])
    grace = spec.get("terminationGracePeriodSeconds", 0)
    if grace < 0:
        causes.append(
            invalid(
                f"{at}.terminationGracePeriodSeconds", grace, "must be greater than or equal to 0"
            )
        )
    return causes + _labels(f"{at}.nodeSelector", spec.get("nodeSelector", {}))


def _only(item: Json, played: set[str], at: str) -> None:
    if others := sorted({name for name, value in item.items() if value} - played):
        raise Failure(
            501, "NotImplemented", f"the stand-in does not play {at}.{others[0]}; teach it to"
        )


def _unique(at: str, items: Iterable[Json]) -> list[Cause]:
    causes: list[Cause] = []
    names: set[str] = set()
    for index, item in enumerate(items):
        where = f"{at}[{index}].name"
        causes += _label(where, item["name"])
        if item["name"] in names:
            shown = f'Duplicate value: "{item["name"]}"'
            causes.append(Cause("FieldValueDuplicate", where, shown))
        names.add(item["name"])
    return causes


def _container(container: Json, volumes: set[str], at: str) -> list[Cause]:
    causes = []
    if not container.get("image"):
        causes.append(required(f"{at}.image"))
    for index, variable in enumerate(container.get("env", [])):
        if not _ENVIRONMENT.fullmatch(variable["name"]):
            causes.append(
                invalid(
                    f"{at}.env[{index}].name", variable["name"],
                    "a valid environment variable name must consist only of printable ASCII "
                    "characters other than '='",
                )
            )  # fmt: skip
        if variable.get("value") and variable.get("valueFrom"):
            field = f"{at}.env[{index}].valueFrom"
            causes.append(invalid(field, "", "may not be specified when `value` is not empty"))
    causes += _mounts(container.get("volumeMounts", []), volumes, at)
    return causes + _resources(container.get("resources", {}), f"{at}.resources")


def _mounts(mounts: list[Json], volumes: set[str], at: str) -> list[Cause]:
    causes: list[Cause] = []
    paths: set[str] = set()
    for index, mount in enumerate(mounts):
        where = f"{at}.volumeMounts[{index}]"
        if mount["name"] not in volumes:
            causes.append(
                Cause("FieldValueNotFound", f"{where}.name", f'Not found: "{mount["name"]}"')
            )
        if not mount["mountPath"]:
            causes.append(required(f"{where}.mountPath"))
        if mount["mountPath"] in paths:
            causes.append(invalid(f"{where}.mountPath", mount["mountPath"], "must be unique"))
        if ".." in mount.get("subPath", "").split("/"):
            causes.append(invalid(f"{where}.subPath", mount["subPath"], "must not contain '..'"))
        elif mount.get("subPath", "").startswith("/"):
            causes.append(invalid(f"{where}.subPath", mount["subPath"], "must be a relative path"))
        paths.add(mount["mountPath"])
    return causes


def _resources(resources: Json, at: str) -> list[Cause]:
    causes = []
    sizes: dict[str, dict[str, object]] = {"limits": {}, "requests": {}}
    for which, amounts in sizes.items():
        for name, quantity in (resources.get(which) or {}).items():
            field = f"{at}.{which}.{name}" if "/" not in name else f"{at}.{which}[{name}]"
            try:
                amounts[name] = amount(quantity)
            except ValueError as error:
                raise Failure(400, "BadRequest", f"{field}: {error}") from None
            if "/" not in name and name not in ("cpu", "memory", "ephemeral-storage"):
                message = "must be a standard resource for containers"
                causes.append(invalid(field, name, message))
            elif "/" in name and amount(quantity).denominator != 1:
                causes.append(invalid(field, quantity, "must be an integer"))
    for name, wanted in sizes["requests"].items():
        limit = sizes["limits"].get(name)
        if limit is None and "/" in name:
            causes.append(
                required(f"{at}.limits", "Limit must be set for non overcommitable resources")
            )
        elif limit is not None and (wanted > limit or ("/" in name and wanted != limit)):  # type: ignore[operator]
            relation = "equal to" if "/" in name else "less than or equal to"
            shown = resources["limits"][name]
            message = f"must be {relation} {name} limit of {shown}"
            causes.append(invalid(f"{at}.requests", str(resources["requests"][name]), message))
    return causes


def default_pod_spec(spec: Json) -> None:
    """Fill in what a pod's specification leaves out."""
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("schedulerName", "default-scheduler")
    spec.setdefault("securityContext", {})
    for container in [*spec.get("initContainers", []), *(spec.get("containers") or [])]:
        container.setdefault("imagePullPolicy", "IfNotPresent")
        resources = container.setdefault("resources", {})
        for name, quantity in (resources.get("limits") or {}).items():
            resources.setdefault("requests", {}).setdefault(name, quantity)


def default_job(job: Json) -> None:
    """Fill in what a Job leaves out, with its selector and the labels of its pods."""
    spec, metadata = job["spec"], job["metadata"]
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("completionMode", "NonIndexed")
    # As docs of backoffLimitPerIndex have it.
    spec.setdefault("backoffLimit", 2147483647 if "backoffLimitPerIndex" in spec else 6)
    spec.setdefault("suspend", False)
    replaces = "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"
    spec.setdefault("podReplacementPolicy", replaces)
    template = spec["template"].setdefault("metadata", {}).setdefault("labels", {})
    for prefix in ("", "batch.kubernetes.io/"):
        template[f"{prefix}controller-uid"] = metadata["uid"]
        template[f"{prefix}job-name"] = metadata["name"]
    uid = {"batch.kubernetes.io/controller-uid": metadata["uid"]}
    spec.setdefault("selector", {"matchLabels": uid})
    default_pod_spec(spec["template"]["spec"])


def check_job(job: Json) -> list[Cause]:
    """Faults of a Job with its defaults."""
    spec = job["spec"]
    causes = []
    for field in (
        "parallelism", "completions", "backoffLimit", "activeDeadlineSeconds",
        "ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes",
    ):  # fmt: skip
        if (spec.get(field) or 0) < 0:
            message = "must be greater than or equal to 0"
            causes.append(invalid(f"spec.{field}", spec[field], message))
    causes += _completions(spec, job["metadata"]["name"])
    template = spec["template"]
    restarts = template["spec"]["restartPolicy"]
    if restarts not in ("OnFailure", "Never"):
        causes.append(
            required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')
        )
    elif spec.get("podFailurePolicy") and restarts != "Never":
        field = "spec.template.spec.restartPolicy"
        message = 'only "Never" is supported when podFailurePolicy is specified'
        causes.append(invalid(field, restarts, message))
    causes += _failure_policy(spec.get("podFailurePolicy"))
    causes += _labels("spec.template.labels", template["metadata"].get("labels", {}))
    return causes + check_pod_spec(template["spec"], "spec.template.spec")


def _completions(spec: Json, name: str) -> list[Cause]:
    causes = []
    modes = ("NonIndexed", "Indexed")
    if spec["completionMode"] not in modes:
        causes.append(unsupported("spec.completionMode", spec["completionMode"], modes))
    indexed = spec["completionMode"] == "Indexed"
    if indexed:
        if spec.get("completions") is None:
            message = "when completion mode is Indexed"
            causes.append(required("spec.completions", message))
        else:
            last = f"{name}-{spec['completions'] - 1}"
            if spec["completions"] and (len(last) > 63 or not _LABEL.fullmatch(last)):
                message = "will not able to create pod with invalid DNS label: " + last
                causes.append(invalid("metadata.name", name, message))
        if spec["parallelism"] > 100_000:
            message = "must be less than or equal to 100000 when completion mode is Indexed"
            causes.append(invalid("spec.parallelism", spec["parallelism"], message))
    elif spec.get("backoffLimitPerIndex") is not None:
        message = "requires indexed completion mode"
        causes.append(invalid("spec.backoffLimitPerIndex", spec["backoffLimitPerIndex"], message))
    return causes


def _failure_policy(policy: Json | None) -> list[Cause]:
    causes = []
    for index, rule in enumerate((policy or {}).get("rules", [])):
        at = f"spec.podFailurePolicy.rules[{index}]"
        actions = ("Count", "FailIndex", "FailJob", "Ignore")
        if rule["action"] not in actions:
            causes.append(unsupported(f"{at}.action", rule["action"], actions))
        if ("onExitCodes" in rule) == bool(rule.get("onPodConditions")):
            message = "specifying one of OnExitCodes and OnPodConditions is required"
            causes.append(invalid(at, "", message))
        codes = rule.get("onExitCodes", {})
        operators = ("In", "NotIn")
        if codes and codes["operator"] not in operators:
            causes.append(unsupported(f"{at}.onExitCodes.operator", codes["operator"], operators))
        if codes and codes["operator"] == "In" and 0 in codes["values"]:
            field = f"{at}.onExitCodes.values[{codes['values'].index(0)}]"
            causes.append(invalid(field, 0, "must not be 0 for the In operator"))
    return causes


def check_service(service: Json) -> list[Cause]:
    """Faults of a Service; headless ones need no ports."""
    spec = service.get("spec", {})
    if not spec.get("ports") and spec.get("clusterIP") != "None":
        return [required("spec.ports")]
    return []


_MAY_CHANGE = {
    "Job": {
        "activeDeadlineSeconds", "backoffLimit", "parallelism", "suspend",
        "ttlSecondsAfterFinished", "maxFailedIndexes",
    },
    "Pod": {"activeDeadlineSeconds", "terminationGracePeriodSeconds", "tolerations"},
}  # fmt: skip


def check_change(kind: Kind, before: Json, after: Json) -> None:
    """Refuse changes of what may not change."""
    if kind.kind not in _MAY_CHANGE:
        return
    old, new = before["spec"], after["spec"]
    changes = sorted(
        name for name in {*old, *new} - _MAY_CHANGE[kind.kind] if old.get(name) != new.get(name)
    )
    causes = [
        invalid(f"spec.{name}", "...", "field is immutable")
        for name in changes
        if not (name == "completions" and new.get("completions") == new.get("parallelism"))
    ]
    if causes:
        raise not_an_object(kind.qualified, before["metadata"]["name"], causes)
