"""Collections: which rows there are to be seen, and by whom."""

from api.schemas.accounts.collections import CollectionBody
from api.services.call import Service
from catalog.accounts import row_collections
from catalog.errors import NotAllowed, NotFound
from catalog.records.expected_version import ExpectedVersion


class Collections(Service):
    """Collections of a home."""

    def list(self) -> list[CollectionBody]:
        """Every collection by name, for callers who see all rows; else the caller's own."""
        caller = self._session.caller
        return [
            CollectionBody.of(collection, users)
            for collection, users in row_collections.listed(self._session.readable_records)
            if caller.sees_all or caller.user in users
        ]

    def get(self, name: str) -> CollectionBody:
        """A collection of `list`.

        Raises:
            NotFound: It is none of these.
        """
        for body in self.list():
            if body.name == name:
                return body
        raise NotFound(
            "collection", name[:80], "framesift collection list, or GET /v1/collections, lists them"
        )

    def add(self, name: str, rule: str) -> CollectionBody:
        """Add a collection.

        Returns:
            The collection; its note says how many files meet the rule.
        """
        # It imports the catalog's database, which all else here does without.
        from query.question.collection_rule import files_in, try_rule

        self._check_admin()
        workspace = self._session.workspace
        try_rule(rule, lambda: workspace.catalog)
        files = files_in(rule, workspace.catalog)
        body = CollectionBody.of(row_collections.add(self._session.records, name, rule), ())
        return body.model_copy(update={"note": _note(files)})

    def remove(self, name: str, *, expected: ExpectedVersion | None = None) -> None:
        """Remove a collection; its users lose access to its rows."""
        self._check_admin()
        row_collections.remove(self._session.records, name, expected)

    def assign(self, name: str, user: str) -> CollectionBody:
        """Give a user access to a collection's rows."""
        self._check_collection_admin(name)
        row_collections.assign(self._session.records, name, user)
        return self._body(name)

    def withdraw(self, name: str, user: str) -> CollectionBody:
        """Let a user see a collection's rows no more; as `assign`."""
        self._check_collection_admin(name)
        row_collections.withdraw(self._session.records, name, user)
        return self._body(name)

    def _body(self, name: str) -> CollectionBody:
        return CollectionBody.of(*row_collections.recorded(self._session.records, name))

    def _check_admin(self) -> None:
        caller = self._session.caller
        if not caller.may("admin"):
            raise NotAllowed(f"user '{caller.user}' is no admin: only admins make collections")

    def _check_collection_admin(self, name: str) -> None:
        caller = self._session.caller
        if caller.may("admin"):
            return
        # Not found would say which names there are.
        listed = row_collections.listed(self._session.records)
        own = [collection.name for collection, users in listed if caller.user in users]
        if "collectionadmin" not in caller.roles or name not in own:
            raise NotAllowed(f"user '{caller.user}' is no collection admin of '{name}'")


def _note(files: int) -> str:
    if files:
        return f"its rule holds for {files:,} files"
    return (
        'its rule holds for no file now; framesift sql "select platform, datasource, path, '
        'filename from metaocean fetch first 9 rows only" shows what a rule can compare'
    )
