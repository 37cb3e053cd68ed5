"""Rights to policies, as Spectrum Discover has them.

    sees every row     all, with every policy
    collectionadmin    makes, changes and removes policies all of whose collections are theirs;
                       starts, pauses, resumes and ends those of which one is
    whoever is in a collection, and a policy's owner, see it

Below that the routes' rules let nobody change anything who may only read. A policy with
collections finds files of those and of no others, whoever starts it.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from api.services.accounts.callers import Caller
from catalog.accounts import row_collections
from catalog.errors import NotAllowed
from catalog.policies.policies import none_named
from catalog.records.reading import Records
from catalog.values import Owner

if TYPE_CHECKING:  # imported where it is used: short commands do without
    from api.workspace import Workspace
    from catalog.records.policy_tables import Policy


@dataclass(frozen=True)
class PolicyRights:
    """Rights of a caller to policies."""

    owner: Owner
    """Who asks."""
    mine: frozenset[str] | None
    """Names of the collections whose rows they see; None where they see every row."""

    @classmethod
    def of(cls, caller: Caller, records: Records) -> "PolicyRights":
        """The rights of a caller, as the records are now."""
        if caller.sees_all:
            return cls(caller.owner, None)
        listed = row_collections.listed(records)
        mine = frozenset(one.name for one, users in listed if caller.user in users)
        return cls(caller.owner, mine)

    @property
    def user(self) -> str:
        """Name of who asks."""
        return self.owner.name

    def sees(self, policy: "Policy") -> bool:
        """Return whether the policy is shown."""
        return self._shares(policy) or Owner(policy.owner, policy.account) == self.owner

    def check_seen(self, policy: "Policy") -> None:
        """Go on only with a policy that is shown.

        Raises:
            NotFound: As if there were none of its name.
        """
        if not self.sees(policy):
            raise none_named(policy.name)

    def check_run(self, policy: "Policy") -> None:
        """Go on only where its runs may be started and ended.

        Raises:
            NotAllowed: None of its collections is the caller's.
        """
        self.check_seen(policy)
        if not self._shares(policy):
            raise NotAllowed(
                f"policy '{policy.name}' is of no collection of user '{self.user}': "
                "ask a data admin to run it"
            )

    def check_change(self, policy: "Policy") -> None:
        """Go on only where it may be made, changed or removed.

        Raises:
            NotAllowed: It is of files beyond the caller's collections.
        """
        if self.mine is None:
            return
        self.check_seen(policy)
        if not policy.collections or not self.mine.issuperset(policy.collections):
            raise NotAllowed(
                f"policy '{policy.name}' is of files beyond the collections of user "
                f"'{self.user}' ({_listed(self.mine)}): ask a data admin"
            )

    def limit(self, workspace: "Workspace", policy: "Policy") -> None:
        """Bind a policy that is to be kept to the caller's collections, in place.

        One that names none is of all of theirs.

        Raises:
            NotAllowed: It names another's, or does what is for data admins.
        """
        if self.mine is None:
            return
        policy.collections = policy.collections or sorted(self.mine)
        if not policy.collections or not self.mine.issuperset(policy.collections):
            raise NotAllowed(
                f"collections {', '.join(map(str, policy.collections))[:200]}: expected some of "
                f"those of user '{self.user}': {_listed(self.mine)}"
            )
        _check_action(workspace, policy)

    def _shares(self, policy: "Policy") -> bool:
        return self.mine is None or not self.mine.isdisjoint(policy.collections)


def _check_action(workspace: "Workspace", policy: "Policy") -> None:
    from pipeline.policies.actions import ImportTags, SetTags, TakeFromField, action_of
    from pipeline.policies.tags import settable

    action = action_of(policy.action, policy.parameters)
    if isinstance(action, ImportTags):
        raise NotAllowed(
            "IMPORT_TAGS reads a file of a connection, which belongs to no collection: "
            "a data admin may"
        )
    if isinstance(action, SetTags | TakeFromField):
        tags = action.values if isinstance(action, SetTags) else [action.rule.tag.lower()]
        with workspace.catalog.reading() as cursor:
            known = settable(cursor)
        for tag in tags:
            if tag not in known:
                raise NotAllowed(f"tag '{tag[:80]}' is not there yet, and a data admin adds tags")


def _listed(names: frozenset[str]) -> str:
    return ", ".join(sorted(names)) or "none"
