"""Users, and the caller's own account: what can be done with them."""

import logging
from collections.abc import Sequence

from api.schemas.accounts.users import MeBody, UserBody
from api.services.call import Service
from catalog.accounts import users
from catalog.errors import FramesiftError
from catalog.records.expected_version import ExpectedVersion

_log = logging.getLogger(__name__)


class Users(Service):
    """Users of a home; routes let admins call this, but for `me`."""

    def list(self) -> list[UserBody]:
        """Every user by name."""
        return [UserBody.of(user) for user in users.listed(self._session.readable_records)]

    def get(self, name: str) -> UserBody:
        """A user."""
        return UserBody.of(users.recorded(self._session.readable_records, name))

    def add(self, name: str, roles: Sequence[str], *, password: str | None = None) -> UserBody:
        """Add a user; without a password only tokens open the account."""
        user = users.add(self._session.records, name, roles, password)
        return UserBody.of(user)

    def set(
        self,
        name: str,
        *,
        roles: Sequence[str] | None = None,
        disabled: bool | None = None,
        password: str | None = None,
        jobs: int | None = None,
        ranks: int | None = None,
        expected: ExpectedVersion | None = None,
    ) -> UserBody:
        """Change a user, all of it or nothing; what is None stays."""
        records = self._session.records
        user = users.change(
            records,
            name,
            roles=roles,
            disabled=disabled,
            password=password,
            most_jobs=jobs,
            most_ranks=ranks,
            expected=expected,
        )
        if password is not None:
            from catalog.accounts import login_throttle

            login_throttle.forget(records, name)
        return UserBody.of(user)

    def remove(self, name: str, *, expected: ExpectedVersion | None = None) -> None:
        """Remove a user and their tokens, and cancel their jobs that have not ended."""
        from catalog.accounts import login_throttle  # with jobs' backends, as below
        from catalog.records.jobs import recorded_jobs
        from pipeline.job_state import UNFINISHED
        from pipeline.jobs.follow import cancel

        records = self._session.records
        user = users.remove(records, name, expected)
        login_throttle.forget(records, name)
        for job in recorded_jobs(records, account=user.account, states=UNFINISHED):
            try:
                cancel(records, job)
            except FramesiftError as error:  # none of its further steps begins
                _log.warning("job %s of removed user %s: %s", job.name, name, error)

    def me(self) -> MeBody:
        """The caller, and what roles and token allow; without a name where nobody logs in."""
        caller = self._session.caller
        return MeBody(
            name=caller.user,
            roles=sorted(caller.roles),
            level=caller.level,
            all_rows=caller.sees_all,
        )

    def set_own_password(self, password: str) -> None:
        """Give the caller, who has proven the one until now, another password."""
        users.change(self._session.records, self._session.caller.user, password=password)
