"""framesift user, token, collection, audit: who may do what on this home's server."""

import getpass
import os
import sys
from datetime import timedelta
from typing import Annotated

import typer

from api.commands.common import open_workspace
from api.people import AuditBody, CollectionBody, NewTokenBody, TokenBody, UserBody
from api.terminal import JsonFlag, emit_json, emit_table, stdout
from catalog import audit_log, login_throttle, row_collections, tokens, users
from catalog.errors import InvalidInput
from catalog.record_store import RecordStore
from query.collection_rule import check_rule

user_app = typer.Typer(help="Users of this home's server.", no_args_is_help=True)
token_app = typer.Typer(help="Tokens, for programs.", no_args_is_help=True)
collection_app = typer.Typer(
    help="Which rows users see whose role does not see all.", no_args_is_help=True
)

PasswordStdin = Annotated[
    bool, typer.Option("--password-stdin", help="Read the password from the first line of stdin.")
]
UserName = Annotated[str, typer.Argument(help="The user.")]


def register(app: typer.Typer) -> None:
    """Add this subject's commands."""
    app.add_typer(user_app, name="user")
    app.add_typer(token_app, name="token")
    app.add_typer(collection_app, name="collection")
    app.command("audit")(audit)


@user_app.command("add")
def user_add(
    name: Annotated[str, typer.Argument(help="Letters, digits and ._@-.")],
    role: Annotated[list[str], typer.Option(help=f"{', '.join(users.ROLES)}; may be given again.")],
    no_password: Annotated[
        bool, typer.Option("--no-password", help="Only tokens open the account.")
    ] = False,
    password_stdin: PasswordStdin = False,
    as_json: JsonFlag = False,
) -> None:
    """Add a user; the password is asked for."""
    records = open_workspace().records
    users.check_name("user", name)
    password = None if no_password else _password(password_stdin)
    made = users.add(records, name, role, password)
    _note(records, "user add", f"{name}: {', '.join(made.roles)}")
    if as_json:
        emit_json(UserBody.of(made).model_dump())
    else:
        stdout.print(f"added user {name}: {', '.join(made.roles)}")


@user_app.command("list")
def user_list(as_json: JsonFlag = False) -> None:
    """List the users."""
    found = [UserBody.of(user).model_dump() for user in users.listed(open_workspace().records)]
    if as_json:
        emit_json(found)
        return
    emit_table(
        ("name", "roles", "password", "state", "created"),
        [
            (
                user["name"],
                ", ".join(user["roles"]),
                "yes" if user["has_password"] else "no",
                "disabled" if user["disabled"] else "",
                user["created"],
            )
            for user in found
        ],
    )


@user_app.command("passwd")
def user_passwd(
    name: UserName, password_stdin: PasswordStdin = False, as_json: JsonFlag = False
) -> None:
    """Give a user another password; logins with the old one end, and failures are forgotten."""
    records = open_workspace().records
    users.found(records, name)
    user = users.set_password(records, name, _password(password_stdin))
    login_throttle.forget(records, name)
    _note(records, "user passwd", name)
    if as_json:
        emit_json(UserBody.of(user).model_dump())
    else:
        stdout.print(f"user {name} has another password")


@user_app.command("disable")
def user_disable(
    name: UserName,
    undo: Annotated[bool, typer.Option("--undo", help="Let the user in again.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Refuse a user and their tokens."""
    records = open_workspace().records
    user = users.set_disabled(records, name, not undo)
    _note(records, "user disable", f"{name}: {'let in again' if undo else 'refused'}")
    if as_json:
        emit_json(UserBody.of(user).model_dump())
    else:
        stdout.print(f"user {name} is {'let in again' if undo else 'refused'}")


@user_app.command("remove")
def user_remove(name: UserName, as_json: JsonFlag = False) -> None:
    """Remove a user and their tokens."""
    records = open_workspace().records
    users.remove(records, name)
    _note(records, "user remove", name)
    if as_json:
        emit_json({"name": name})
    else:
        stdout.print(f"removed user {name}")


@user_app.command("roles")
def user_roles(
    name: UserName,
    roles: Annotated[list[str], typer.Argument(help=", ".join(users.ROLES))],
    as_json: JsonFlag = False,
) -> None:
    """Give a user these roles, and no others."""
    records = open_workspace().records
    user = users.set_roles(records, name, roles)
    _note(records, "user roles", f"{name}: {', '.join(user.roles)}")
    if as_json:
        emit_json(UserBody.of(user).model_dump())
    else:
        stdout.print(f"user {name}: {', '.join(user.roles)}")


@token_app.command("create")
def token_create(
    name: Annotated[str, typer.Argument(help="Tells the user's tokens apart.")],
    user: Annotated[str, typer.Option(help="Whose.")],
    scope: Annotated[
        str, typer.Option(help="read, write or admin; each has those before it.")
    ] = "read",
    days: Annotated[int, typer.Option(min=1, max=tokens.MOST_DAYS, help="Until it expires.")] = 365,
    as_json: JsonFlag = False,
) -> None:
    """Make a token, and print it; nothing shows it again."""
    records = open_workspace().records
    token, text = tokens.create(records, user, name, scope, timedelta(days=days))
    _note(records, "token create", f"{user}/{name}: {scope}, {days} days")
    if as_json:
        body = TokenBody.of(token, user).model_dump()
        emit_json(NewTokenBody(**body, token=text).model_dump())
    else:
        typer.echo(text)


@token_app.command("list")
def token_list(
    user: Annotated[str | None, typer.Option(help="Only of this user.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """List the tokens, without what they are made of."""
    listed = tokens.listed(open_workspace().records, user)
    found = [TokenBody.of(token, name).model_dump() for token, name in listed]
    if as_json:
        emit_json(found)
    else:
        columns = ("id", "user", "name", "scope", "state", "expires", "last_used")
        emit_table(columns, [[token[c] for c in columns] for token in found])


@token_app.command("revoke")
def token_revoke(
    number: Annotated[int, typer.Argument(help="Its number: framesift token list.")],
    as_json: JsonFlag = False,
) -> None:
    """Let a token count no more."""
    records = open_workspace().records
    token, user = tokens.revoke(records, number)
    _note(records, "token revoke", f"{user}/{token.name}")
    if as_json:
        emit_json(TokenBody.of(token, user).model_dump())
    else:
        stdout.print(f"revoked token {token.name} of user {user}")


@collection_app.command("add")
def collection_add(
    name: Annotated[str, typer.Argument(help="Letters, digits and ._@-.")],
    rule: Annotated[str, typer.Argument(help="A WHERE body over metaocean's columns.")],
    as_json: JsonFlag = False,
) -> None:
    """Add a collection: the rows that a rule holds for."""
    records = open_workspace().records
    check_rule(rule)
    body = CollectionBody.of(row_collections.add(records, name, rule), ())
    _note(records, "collection add", f"{name}: {rule}")
    if as_json:
        emit_json(body.model_dump())
    else:
        stdout.print(f"added collection {name}: {rule}")


@collection_app.command("list")
def collection_list(as_json: JsonFlag = False) -> None:
    """List the collections, with their users."""
    listed = row_collections.listed(open_workspace().records)
    found = [CollectionBody.of(collection, members) for collection, members in listed]
    if as_json:
        emit_json([body.model_dump() for body in found])
    else:
        emit_table(
            ("name", "rule", "users"),
            [(body.name, body.rule, ", ".join(body.users)) for body in found],
        )


@collection_app.command("assign")
def collection_assign(
    name: Annotated[str, typer.Argument(help="The collection.")],
    user: UserName,
    undo: Annotated[bool, typer.Option("--undo", help="Show its rows no more.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Let a user see a collection's rows."""
    records = open_workspace().records
    (row_collections.withdraw if undo else row_collections.assign)(records, name, user)
    _note(records, "collection assign", f"{name}: {'not ' if undo else ''}{user}")
    body = CollectionBody.of(*row_collections.found(records, name))
    if as_json:
        emit_json(body.model_dump())
    else:
        stdout.print(f"collection {name}: {', '.join(body.users) or 'nobody'}")


@collection_app.command("remove")
def collection_remove(
    name: Annotated[str, typer.Argument(help="The collection.")], as_json: JsonFlag = False
) -> None:
    """Remove a collection; its users see its rows no more."""
    records = open_workspace().records
    row_collections.remove(records, name)
    _note(records, "collection remove", name)
    if as_json:
        emit_json({"name": name})
    else:
        stdout.print(f"removed collection {name}")


def audit(
    who: Annotated[str | None, typer.Option(help="Only of this user.")] = None,
    outcome: Annotated[str | None, typer.Option(help="Only with this outcome, as 403.")] = None,
    before: Annotated[
        int | None, typer.Option(min=1, max=2**31 - 1, help="Only with a smaller number.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="At most so many.")] = 100,
    as_json: JsonFlag = False,
) -> None:
    """Show who changed what on the server, and who was refused; newest first."""
    entries = audit_log.entries(
        open_workspace().records, who=who, outcome=outcome, before=before, limit=limit
    )
    found = [AuditBody.of(entry).model_dump() for entry in entries]
    if as_json:
        emit_json(found)
    else:
        columns = ("id", "time", "who", "address", "what", "target", "outcome")
        emit_table(columns, [[str(entry[c]) for c in columns] for entry in found])


def _password(from_stdin: bool) -> str:
    if from_stdin:
        return sys.stdin.readline().rstrip("\r\n")
    if not sys.stdin.isatty():
        raise InvalidInput("no terminal to ask for a password: give --password-stdin")
    return str(typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))


def _note(records: RecordStore, what: str, target: str) -> None:
    """Write a change into the audit log; by commands, the machine's user did it."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = str(os.getuid())
    audit_log.add(records, f"command line ({name})", what, target, audit_log.DONE)
