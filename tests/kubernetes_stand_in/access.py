"""Who asks (bearer tokens), and what Roles and ClusterRoles let them do."""

import secrets
import time
from dataclasses import dataclass

from tests.kubernetes_stand_in.failures import Failure, Json
from tests.kubernetes_stand_in.store import Store

MASTERS = "system:masters"


@dataclass(frozen=True)
class User:
    """Who a token speaks for."""

    name: str
    groups: tuple[str, ...] = ()


@dataclass(frozen=True)
class Attempt:
    """What is asked for."""

    verb: str
    group: str
    resource: str
    """With its subresource: jobs/status."""
    namespace: str
    name: str


class Access:
    """Tokens, and the rules in the store."""

    def __init__(self, store: Store, admin_token: str) -> None:
        """One token for all rights."""
        self.store = store
        self.asked: set[tuple[str, str, str, str]] = set()
        """User, group, resource and verb of all that was allowed, as an audit log has it."""
        self._tokens: dict[str, tuple[User, float]] = {
            admin_token: (User("admin", (MASTERS, "system:authenticated")), float("inf"))
        }

    def token(self, user: User, seconds: float) -> str:
        """A new one of a user."""
        token = secrets.token_urlsafe(24)
        self._tokens[token] = (user, time.monotonic() + seconds)
        return token

    def expire(self, token: str) -> None:
        """Have a token be too old."""
        user, _ = self._tokens[token]
        self._tokens[token] = (user, 0.0)

    def user(self, authorization: str) -> User:
        """Who asks.

        Raises:
            Failure: 401, as the token is none or too old.
        """
        if not authorization:
            return User("system:anonymous", ("system:unauthenticated",))
        scheme, _, token = authorization.partition(" ")
        user, ends = self._tokens.get(token, (None, 0.0))
        if scheme != "Bearer" or user is None or time.monotonic() > ends:
            raise Failure(401, "Unauthorized", "Unauthorized")
        return user

    def allows(self, user: User, attempt: Attempt) -> bool:
        """Whether a rule lets somebody do it."""
        return MASTERS in user.groups or any(
            _matches(rule, attempt) for rule in self._rules(user, attempt.namespace)
        )

    def need(self, user: User, attempt: Attempt) -> None:
        """Refuse what no rule allows.

        Raises:
            Failure: 403.
        """
        if self.allows(user, attempt):
            self.asked.add((user.name, attempt.group, attempt.resource, attempt.verb))
            return
        plural = attempt.resource.split("/")[0]
        resource = f"{plural}.{attempt.group}" if attempt.group else plural
        named = f' "{attempt.name}"' if attempt.name else ""
        where = (
            f'in the namespace "{attempt.namespace}"'
            if attempt.namespace
            else "at the cluster scope"
        )
        message = (
            f'{resource}{named} is forbidden: User "{user.name}" cannot {attempt.verb} resource '
            f'"{attempt.resource}" in API group "{attempt.group}" {where}'
        )
        details = {"name": attempt.name, "group": attempt.group, "kind": plural}
        details = {name: value for name, value in details.items() if value}
        raise Failure(403, "Forbidden", message, details)

    def _rules(self, user: User, namespace: str) -> list[Json]:
        bindings = [(each, "") for each in self.store.all("ClusterRoleBinding")]
        if namespace:
            bindings += [(each, namespace) for each in self.store.all("RoleBinding", namespace)]
        rules: list[Json] = []
        for binding, within in bindings:
            if any(_is(subject, user) for subject in binding.get("subjects", ())):
                role = binding["roleRef"]
                of = within if role["kind"] == "Role" else ""
                known = self.store.get(role["kind"], role["name"], of)
                rules += (known or {}).get("rules") or []
        return rules


def _is(subject: Json, user: User) -> bool:
    if subject["kind"] == "ServiceAccount":
        return user.name == f"system:serviceaccount:{subject['namespace']}:{subject['name']}"
    return subject["name"] in ((user.name,) if subject["kind"] == "User" else user.groups)


def _matches(rule: Json, attempt: Attempt) -> bool:
    def has(field: str, *values: str) -> bool:
        return bool({"*", *values} & {*rule.get(field, ())})

    subresource = f"*/{attempt.resource.partition('/')[2]}"
    resources = (attempt.resource, subresource) if "/" in attempt.resource else (attempt.resource,)
    names = rule.get("resourceNames") or [attempt.name]
    return (
        has("verbs", attempt.verb)
        and has("apiGroups", attempt.group)
        and has("resources", *resources)
        and attempt.name in names
    )
