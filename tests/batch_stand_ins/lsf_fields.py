"""The fields of bjobs -o, and how they are printed.

Source: IBM Spectrum LSF 10.1, command reference, bjobs -o and -json; outputs that users of 10.1
published (slashes are escaped, all values are texts).
"""

import json
import re
from dataclasses import dataclass

_ALIASES = {
    "id": "jobid", "ugroup": "user_group", "name": "job_name", "description": "job_description",
    "proj": "proj_name", "project": "proj_name", "app": "application", "sla": "service_class",
    "group": "job_group", "priority": "job_priority", "cmd": "command",
    "pre_cmd": "pre_exec_command", "post_cmd": "post_exec_command",
    "resize_cmd": "resize_notification_command", "estart_time": "estimated_start_time",
    "sstart_time": "specified_start_time", "sterminate_time": "specified_terminate_time",
    "warn_act": "warning_action", "warn_time": "action_warning_time",
    "except_stat": "exception_status", "eresreq": "effective_resreq",
    "cresreq": "combined_resreq", "fwd_cluster": "forward_cluster", "fwd_time": "forward_time",
    "min_req_proc": "min_req_proc",
}  # fmt: skip
_KNOWN = """

    jobid jobindex stat user user_group queue job_name job_description proj_name application
    service_class job_group job_priority rsvid esub kill_reason suspend_reason resume_reason
    kill_issue_host suspend_issue_host resume_issue_host dependency pend_reason command
    pre_exec_command post_exec_command resize_notification_command pids exit_code exit_reason
    from_host first_host exec_host nexec_host ask_hosts alloc_slot nalloc_slot nreq_slot slots
    host_file submit_time start_time estimated_start_time specified_start_time
    specified_terminate_time time_left finish_time estimated_run_time run_time ru_utime ru_stime
    %complete warning_action action_warning_time pend_time ependtime ipendtime
    estimated_sim_start_time cpu_used idle_factor exception_status mem max_mem avg_mem memlimit
    swap swaplimit corelimit stacklimit processlimit runtimelimit nthreads hrusage min_req_proc
    max_req_proc effective_plimit plimit gpu_num gpu_mode gpu_alloc j_exclusive effective_resreq
    combined_resreq network input_file output_file error_file output_dir sub_cwd exec_home exec_cwd
    licproject forward_cluster forward_time srcjobid dstjobid source_cluster energy gpfsio block
    cpu_peak cpu_efficiency mem_efficiency average_cpu_efficiency cpu_peak_efficiency
    longjobid bsla_name charged_saap req_mem plan_start_time plan_finish_time
"""
KNOWN = frozenset(_KNOWN.split())
TITLES = {name: name.upper() for name in KNOWN}


@dataclass(frozen=True)
class Fields:
    """Of -o."""

    names: list[str]
    widths: list[int]
    """0 for as wide as it is; negative for right justified."""
    delimiter: str


def FIELDS(text: str) -> Fields:  # noqa: N802  # named as the constant that it stands for
    """-o: "jobid stat:10 delimiter=','".

    Raises:
        ValueError: A field is unknown; the message is bjobs'.
    """
    match = re.search(r"\bdelimiter=(['\"])(.+?)\1", text)
    delimiter = match[2] if match else " "
    rest = text.replace(match[0], " ") if match else text
    names, widths = [], []
    for word in rest.split():
        name, _, width = word.partition(":")
        name = _ALIASES.get(name.lower(), name.lower())
        if name not in KNOWN:
            raise ValueError(f"{word}: Unknown field name")
        if not re.fullmatch(r"-?\d*", width):
            raise ValueError(f"{word}: Illegal output width")
        names.append(name)
        widths.append(int(width) if width.strip("-") else 0)
    if not names:
        raise ValueError("-o: no field is named")
    return Fields(names, widths, delimiter)


def columns(fields: Fields, rows: list[list[str]], *, with_header: bool) -> str:
    """The table of -o without -json."""
    lines = [[TITLES[name] for name in fields.names]] * with_header + rows
    return "".join(
        fields.delimiter.join(
            _fitted(value, width) for value, width in zip(line, fields.widths, strict=True)
        )
        + "\n"
        for line in lines
    )


def _fitted(value: str, width: int) -> str:
    if not width:
        return value
    cut = value[: abs(width)]
    return cut.ljust(width) if width > 0 else cut.rjust(-width)


def json_text(command: str, records: list[dict[str, str]]) -> str:
    """The answer of -json."""
    said = json.dumps({"COMMAND": command, "JOBS": len(records), "RECORDS": records}, indent=2)
    return said.replace('": ', '":').replace("/", "\\/") + "\n"


def wrapped(line: str) -> str:
    """A line of bhist -l: cut at 80 characters wherever that is, the rest indented by 21."""
    if not line:
        return line
    pieces, rest = [line[:79]], line[79:]
    while rest:
        pieces.append(" " * 21 + rest[:58])
        rest = rest[58:]
    return "\n".join(pieces)
