"""/v1/me: who asks, and one's own password."""

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ConfigDict, Field

from api.http.dependencies import CurrentCaller, CurrentPassage
from api.http.middleware.gate import Gate
from api.http.routing import Router
from api.http.rules import OWN_ACCOUNT, READ
from catalog.accounts import users
from catalog.errors import InvalidInput
from catalog.text.bounded import Secret

router = Router(prefix="/v1/me", tags=["users"])


class MeBody(BaseModel):
    """Who asks."""

    name: str = Field(
        description="Empty where the server asks nobody who they are.", examples=["anna"]
    )
    roles: list[str] = Field(examples=[["datauser"]])
    level: str = Field(
        description="What roles and token allow: read, write or admin.", examples=["read"]
    )
    all_rows: bool = Field(description="Whether every row is seen, and not those of collections.")


class OwnPassword(BaseModel):
    """A password in place of another."""

    model_config = ConfigDict(extra="forbid")

    current: Secret = Field(description="The one until now.")
    password: Secret = Field(description="The one from now on.")


@router.get("", rule=READ)
async def get_me(caller: CurrentCaller) -> MeBody:
    """Who asks, and what they may do with this token."""
    return MeBody(
        name=caller.user,
        roles=sorted(caller.roles),
        level=caller.level,
        all_rows=caller.sees_all,
    )


@router.put(
    "/password",
    rule=OWN_ACCOUNT,
    status_code=204,
    example={
        "current": "the one until now",
        "password": "the one from now on",
    },
)
async def put_password(
    wanted: OwnPassword, request: Request, caller: CurrentCaller, passage: CurrentPassage
) -> Response:
    """Change one's own password, by the one until now; it ends what was logged in."""
    if not caller.user:
        raise InvalidInput("this server asks nobody who they are: it knows no password of yours")
    gate: Gate = request.state.gate
    await gate.prove(passage, caller.user, wanted.current.get_secret_value())
    password = wanted.password.get_secret_value()
    await run_in_threadpool(users.set_password, passage.records, caller.user, password)
    return Response(status_code=204)
