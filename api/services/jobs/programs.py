"""The users whose programs a home runs."""

from typing import TYPE_CHECKING

from catalog.errors import NotAllowed

if TYPE_CHECKING:
    from api.services.call import Call


def need_programs(call: "Call") -> None:
    """Go on only where a caller's own program may be run: it could do all that the server can.

    Raises:
        NotAllowed: It may not.
    """
    if call.is_command:  # the program would do no more than the user who gives the command
        return
    allowed, caller = call.whole.settings.run_programs, call.caller
    if allowed == "nobody":
        raise NotAllowed(
            "this server runs no programs of users; whoever starts it may set "
            "FRAMESIFT_RUN_PROGRAMS to admins or users, and 'framesift run' on its machine's home "
            "needs no setting"
        )
    if not caller.may("admin" if allowed == "admins" else "write") or not caller.sees_all:
        needed = "the role admin" if allowed == "admins" else "to write, and to see every row"
        raise NotAllowed(
            f"user '{caller.user}': this server runs programs of {allowed} only; that needs "
            f"{needed}"
        )
