"""Drives a home's jobs: the reconciler's looks, policies, triggers, and webhooks."""

import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Thread

from api.services.automation.delivering import notify_webhooks
from api.services.automation.starting import start_triggers
from api.services.session import Session
from api.workspace import Workspace
from catalog.errors import FramesiftError, StorageError
from framesift_start import start
from pipeline.jobs.workflow.reconciler import drive, is_driven

_POLICIES_EVERY_S = 60.0
_TRIGGERS_EVERY_S = 5.0

_log = logging.getLogger(__name__)


def drive_home(
    workspace: Workspace,
    goes_on: Callable[[int], bool],
    *,
    every_s: float = 1.0,
    report: Callable[[str], None] | None = None,
) -> bool:
    """Drive the jobs of a home, begin its policies and triggers; whether this process did.

    Args:
        workspace: The whole home.
        goes_on: Told after each look how many jobs have not ended; whether to look again.
        every_s: Between two looks.
        told: Told of each problem, once as long as it stays the same.

    Raises:
        StorageError: The jobs' folder cannot be written.
    """
    looked_s = triggers_s = time.monotonic()
    teller: Thread | None = None
    reported: set[str] = set()
    warn = report or _log.warning

    def tell_once(line: str) -> None:
        if line not in reported:
            reported.add(line)
            warn(line)

    def and_others(unfinished: int) -> bool:
        nonlocal looked_s, triggers_s, teller
        if not goes_on(unfinished):
            return False
        if time.monotonic() - looked_s >= _POLICIES_EVERY_S:
            looked_s = time.monotonic()
            begin_policies(workspace, tell_once)
        if time.monotonic() - triggers_s >= _TRIGGERS_EVERY_S:
            triggers_s = time.monotonic()
            begin_triggers(workspace, tell_once)
            if teller is None or not teller.is_alive():
                # Beside: a receiver that is slow to answer holds up no job.
                teller = Thread(target=tell_ends, args=(workspace, tell_once), daemon=True)
                teller.start()
        return True

    return drive(
        workspace.records,
        workspace.job_queue,
        goes_on=and_others,
        every_s=every_s,
        report=tell_once,
    )


def begin_policies(workspace: Workspace, warn: Callable[[str], None]) -> None:
    """Begin the policies of a home whose time has come."""
    try:
        Session(workspace).policies.start_due()
    except FramesiftError as error:
        warn(f"policies: {error}")


def begin_triggers(workspace: Workspace, warn: Callable[[str], None]) -> None:
    """Begin the triggers of a home that are due, and go on with those that were."""
    try:
        start_triggers(workspace, warn)
    except FramesiftError as error:
        warn(f"triggers: {error}")


def tell_ends(workspace: Workspace, warn: Callable[[str], None]) -> None:
    """Tell webhooks of the jobs that have ended."""
    try:
        notify_webhooks(workspace, warn)
    except FramesiftError as error:
        warn(f"webhooks: {error}")


def drive_detached(workspace: Workspace) -> None:
    """Start a process that drives the home's jobs until all have ended, where none does."""
    with suppress(StorageError):
        if is_driven(workspace.job_queue):
            return
        workspace.jobs.mkdir(parents=True, exist_ok=True)
        with suppress(OSError), (workspace.jobs / ".driver.log").open("ab") as log:
            subprocess.Popen(
                [sys.executable, *start("api.cli.main"), "jobs", "daemon", "--until-done"],
                cwd=workspace.jobs,
                env={**os.environ, **workspace.variables},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
