"""framesift user, token, collection, audit: users, their rights and their actions on a server."""

import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from api.cli import destination
from api.cli.tables.table import emit_table
from api.cli.target import Record, target
from api.cli.terminal import JsonFlag, emit_json, stdout
from catalog.accounts.accounts import MOST_DAYS, ROLES
from catalog.errors import InvalidInput
from catalog.text.account_name import check_name

user_app = typer.Typer(help="Users of a server.", no_args_is_help=True)
token_app = typer.Typer(help="Tokens, for programs.", no_args_is_help=True)
collection_app = typer.Typer(
    help="Collections: rows that users limited to collections can read.", no_args_is_help=True
)

PasswordStdin = Annotated[
    bool, typer.Option("--password-stdin", help="Read the password from the first line of stdin.")
]
UserName = Annotated[str, typer.Argument(help="The user.")]


@user_app.command("add")
def user_add(
    name: Annotated[str, typer.Argument(help="Letters, digits and ._@-.")],
    role: Annotated[list[str], typer.Option(help=f"{', '.join(ROLES)}; may be given again.")],
    no_password: Annotated[
        bool, typer.Option("--no-password", help="Only tokens open the account.")
    ] = False,
    password_stdin: PasswordStdin = False,
    as_json: JsonFlag = False,
) -> None:
    """Add a user; prompts for the password."""
    users = target().users
    check_name("user", name)
    password = None if no_password else _new_password(password_stdin)
    user = users.add(name, role, password=password)
    _emit(user, as_json, f"added user {name}: {', '.join(user['roles'])}")


@user_app.command("list")
def user_list(as_json: JsonFlag = False) -> None:
    """List the users."""
    users: list[Record] = list(target().users.list())
    if as_json:
        emit_json(users)
        return
    emit_table(
        ("name", "roles", "password", "state", "jobs", "ranks", "created"),
        [
            (
                user["name"],
                ", ".join(user["roles"]),
                "yes" if user["has_password"] else "no",
                "disabled" if user["disabled"] else "",
                user["jobs"] or "",
                user["ranks"] or "",
                user["created"],
            )
            for user in users
        ],
    )


@user_app.command("passwd")
def user_passwd(
    name: Annotated[
        str | None, typer.Argument(help="The user; on a server, by default, yourself.")
    ] = None,
    password_stdin: PasswordStdin = False,
    as_json: JsonFlag = False,
) -> None:
    """Change a user's password; logins with the old one end, failed logins are forgotten.

    To change your own, give the current one first (with --password-stdin: the first line).
    """
    if name is None:
        _own_password(password_stdin, as_json)
        return
    users = target().users
    users.get(name)  # before the password is asked for
    user = users.set(name, password=_new_password(password_stdin))
    _emit(user, as_json, f"user {name} has another password")


def _own_password(from_stdin: bool, as_json: bool) -> None:
    if destination.server() is None:
        raise InvalidInput(
            "commands on a home act without an account: name the user, or give --server for yours"
        )
    client = destination.client()
    me = client.me()
    if not me["name"]:
        raise InvalidInput("this server does not authenticate: name the user")
    current = _password(from_stdin, "Password until now")
    client.set_own_password(current, _new_password(from_stdin))
    _emit(me, as_json, f"user {me['name']} has another password: log in again")


@user_app.command("disable")
def user_disable(
    name: UserName,
    undo: Annotated[bool, typer.Option("--undo", help="Enable the user again.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Disable a user and their tokens."""
    user = target().users.set(name, disabled=not undo)
    _emit(user, as_json, f"user {name} is {'let in again' if undo else 'refused'}")


@user_app.command("remove")
def user_remove(name: UserName, as_json: JsonFlag = False) -> None:
    """Remove a user and their tokens."""
    target().users.remove(name)
    _emit({"name": name}, as_json, f"removed user {name}")


@user_app.command("roles")
def user_roles(
    name: UserName,
    roles: Annotated[list[str], typer.Argument(help=", ".join(ROLES))],
    as_json: JsonFlag = False,
) -> None:
    """Set a user's roles; others are taken away."""
    user = target().users.set(name, roles=roles)
    _emit(user, as_json, f"user {name}: {', '.join(user['roles'])}")


@user_app.command("quota")
def user_quota(
    name: UserName,
    jobs: Annotated[
        int | None, typer.Option(min=0, help="That may wait or run at once; 0: as settings say.")
    ] = None,
    ranks: Annotated[
        int | None, typer.Option(min=0, help="Processes of these jobs; 0: as settings say.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Set how many jobs, and ranks of jobs, a user may have waiting or running at once."""
    if jobs is None and ranks is None:
        raise InvalidInput("give --jobs, --ranks, or both: what the user may have at once")
    user = target().users.set(name, jobs=jobs, ranks=ranks)
    limits = [f"{user[of]:,} {of}" if user[of] else f"{of} as settings say" for of in _QUOTAS]
    _emit(user, as_json, f"user {name} may have at once: {', '.join(limits)}")


_QUOTAS = ("jobs", "ranks")


@token_app.command("create")
def token_create(
    name: Annotated[str, typer.Argument(help="Name of the token.")],
    user: Annotated[str, typer.Option(help="The token's user.")],
    scope: Annotated[
        str, typer.Option(help="read, write or admin; each has those before it.")
    ] = "read",
    days: Annotated[int, typer.Option(min=1, max=MOST_DAYS, help="Until it expires.")] = 365,
    as_json: JsonFlag = False,
) -> None:
    """Create a token and print it; it cannot be shown again."""
    token = target().tokens.create(name, user=user, scope=scope, days=days)
    if as_json:
        emit_json(token)
    else:
        typer.echo(token["token"])


@token_app.command("list")
def token_list(
    user: Annotated[str | None, typer.Option(help="Only of this user.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """List the tokens, without their secrets."""
    tokens: list[Record] = list(target().tokens.list(user=user))
    if as_json:
        emit_json(tokens)
    else:
        columns = ("id", "user", "name", "scope", "state", "expires", "last_used")
        emit_table(columns, [[token[c] for c in columns] for token in tokens])


@token_app.command("revoke")
def token_revoke(
    number: Annotated[int, typer.Argument(help="Its number: framesift token list.")],
    as_json: JsonFlag = False,
) -> None:
    """Revoke a token."""
    token = target().tokens.revoke(number)
    _emit(token, as_json, f"revoked token {token['name']} of user {token['user']}")


@collection_app.command("add")
def collection_add(
    name: Annotated[str, typer.Argument(help="Letters, digits and ._@-.")],
    rule: Annotated[str, typer.Argument(help="A WHERE body over metaocean's columns.")],
    as_json: JsonFlag = False,
) -> None:
    """Add a collection: the rows that meet a rule."""
    body = target().collections.add(name, rule)
    _emit(body, as_json, f"added collection {name}: {rule}; {body['note']}")


@collection_app.command("list")
def collection_list(as_json: JsonFlag = False) -> None:
    """List the collections, with their users."""
    collections: list[Record] = list(target().collections.list())
    if as_json:
        emit_json(collections)
    else:
        emit_table(
            ("name", "rule", "users"),
            [(body["name"], body["rule"], ", ".join(body["users"])) for body in collections],
        )


@collection_app.command("assign")
def collection_assign(
    name: Annotated[str, typer.Argument(help="The collection.")],
    user: UserName,
    undo: Annotated[bool, typer.Option("--undo", help="Take the access away.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Give a user access to a collection's rows."""
    collections = target().collections
    body = collections.withdraw(name, user) if undo else collections.assign(name, user)
    _emit(body, as_json, f"collection {name}: {', '.join(body['users']) or 'nobody'}")


@collection_app.command("remove")
def collection_remove(
    name: Annotated[str, typer.Argument(help="The collection.")], as_json: JsonFlag = False
) -> None:
    """Remove a collection; its users lose access to its rows."""
    target().collections.remove(name)
    _emit({"name": name}, as_json, f"removed collection {name}")


def audit(
    who: Annotated[str | None, typer.Option(help="Only of this user.")] = None,
    outcome: Annotated[
        str | None, typer.Option(help="Only with this outcome, such as 403.")
    ] = None,
    before: Annotated[
        int | None, typer.Option(min=1, max=2**31 - 1, help="Only entries before this number.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="At most this many.")] = 100,
    as_json: JsonFlag = False,
) -> None:
    """Show who changed what on the server, and who was refused; newest first."""
    entries: list[Record] = list(
        target().audit.list(who=who, outcome=outcome, before=before, limit=limit)
    )
    if as_json:
        emit_json(entries)
    else:
        columns = ("id", "time", "who", "address", "what", "target", "outcome", "note")
        emit_table(columns, [[str(entry[c]) for c in columns] for entry in entries])


def _new_password(from_stdin: bool) -> str:
    return _password(from_stdin, "New password", twice=True)


def _password(from_stdin: bool, what: str, *, twice: bool = False) -> str:
    if from_stdin:
        return sys.stdin.readline().rstrip("\r\n")
    if not sys.stdin.isatty():
        raise InvalidInput("no terminal to ask for a password: give --password-stdin")
    return str(typer.prompt(what, hide_input=True, confirmation_prompt=twice, err=True))


def _emit(body: Record | Mapping[str, Any], as_json: bool, sentence: str) -> None:
    if as_json:
        emit_json(body)
    else:
        stdout.print(sentence)
