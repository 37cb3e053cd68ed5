"""Vehicle bus of a recording (bus_signals.json): speed, acceleration, steering, position.

A2D2 has it in two shapes. The semantic set: a list, an entry per frame,
{frame_name, timestamp, flexray: {signal: {timestamps, values, unit}}}, signals absent where none
came. The sensor fusion set: {signal: {unit, values: [[timestamp, value], ...]}}.
Timestamps are microseconds on the clock of the camera JSON's cam_tstamp.

Source: A2D2's tutorial and the schemas of ros-box/a2d2_to_ros.
"""

import json
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from catalog.errors import BadFile
from catalog.storage.lru import Lru
from ingest.extractors.base import CataloguedFrame, Extractor, SourceFiles
from ingest.labels.other_content import not_json

PLAIN = {
    "vehicle_speed_kmh": ("vehicle_speed", "Unit_KiloMeterPerHour"),
    "acceleration_x_ms2": ("acceleration_x", "Unit_MeterPerSeconSquar"),
    "acceleration_y_ms2": ("acceleration_y", "Unit_MeterPerSeconSquar"),
    "acceleration_z_ms2": ("acceleration_z", "Unit_MeterPerSeconSquar"),
    "brake_pressure_bar": ("brake_pressure", "Unit_Bar"),
}
"""Tag -> its signal and the unit that it must have."""

SIGNED = {
    "steering_angle_deg": ("steering_angle_calculated", "steering_angle_calculated_sign"),
    "latitude_deg": ("latitude_degree", "latitude_direction"),
    "longitude_deg": ("longitude_degree", "longitude_direction"),
}
"""Tag -> its signal [degrees] and the one that says its sign: 0 is plus, 1 minus."""

_DEGREES = "Unit_DegreOfArc"

TOLERANCE_MS = 100.0
POSITION_TOLERANCE_MS = 1_000.0
"""Largest distance of a sample from the frame's time [ms]; positions come more rarely than the
rest."""

_KEPT_RECORDINGS = 2

_FRAME_NAME = re.compile(r"\d{14}_[A-Za-z0-9]+_(?P<camera>[a-z]+)_(?P<number>\d{9})(\.[a-z]+)?")

_Times = npt.NDArray[np.int64]
_Values = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Signal:
    """Samples of one signal in order of time: times [us], values [unit]."""

    times: _Times
    values: _Values
    unit: str | None = None

    def nearest(self, time: int, tolerance_us: float) -> tuple[int, float] | None:
        """Time and value of the sample nearest to a time; None where none is near enough.

        Of two equally near ones the earlier.
        """
        if not self.times.size:
            return None
        after = int(np.searchsorted(self.times, time))
        around = [at for at in (after - 1, after) if 0 <= at < self.times.size]
        best = min(around, key=lambda at: abs(int(self.times[at]) - time))
        moment = int(self.times[best])
        return (moment, float(self.values[best])) if abs(moment - time) <= tolerance_us else None


@dataclass(frozen=True, slots=True)
class Recording:
    """A bus file: its signals, and the time [us] of frames that it names by camera and number."""

    signals: Mapping[str, Signal]
    named: Mapping[tuple[str, int], int]


class Bus(Extractor):
    """Speed [km/h], acceleration [m/s2], steering wheel angle, brake pressure [bar], position.

    steering_angle_deg is positive to the left, latitude_deg to the north, longitude_deg to the
    east. Each tag is the sample nearest to the frame's time, unknown where none lies within
    TOLERANCE_MS (POSITION_TOLERANCE_MS for the position) or where its sign is not known. The
    frame's time is that of the file's entry of its name, else the camera JSON's cam_tstamp.
    """

    family: ClassVar[str] = "bus"
    columns: ClassVar[Mapping[str, str]] = dict.fromkeys((*PLAIN, *SIGNED), "DOUBLE")
    reads: ClassVar[str] = "{stamp}_bus_signals.json"

    def __init__(
        self,
        tolerance_ms: float = TOLERANCE_MS,
        position_tolerance_ms: float = POSITION_TOLERANCE_MS,
    ) -> None:
        """An extractor with tolerances [ms] of its own."""
        self._tolerance_us = 1_000 * tolerance_ms
        self._position_us = 1_000 * position_tolerance_ms
        self._recordings: Lru[tuple[str, str], Recording | BadFile] = Lru(_KEPT_RECORDINGS)
        self._lock = threading.Lock()

    def extract(self, source: SourceFiles, frame: CataloguedFrame) -> Mapping[str, object] | None:
        """Tags of the frame's moment; see Extractor."""
        recording = self._recording(source, frame)
        time = recording.named.get((frame.camera.replace("_", ""), frame.number))
        if time is None:
            if frame.camera_json is None:
                return None
            time = camera_time(source.read(frame.camera_json))
        tags: dict[str, object] = {}
        for tag, (name, _) in PLAIN.items():
            sample = _sample(recording, name, time, self._tolerance_us)
            tags[tag] = sample[1] if sample else None
        for tag, (name, sign) in SIGNED.items():
            tolerance = self._tolerance_us if tag.startswith("steering") else self._position_us
            tags[tag] = _signed(recording, name, sign, time, tolerance)
        return tags

    def _recording(self, source: SourceFiles, frame: CataloguedFrame) -> Recording:
        # One at a time: frames come scene by scene, and the others wait for the same file.
        key = frame.file_source, frame.file
        with self._lock:
            recording = self._recordings.get(key)
            if recording is None:
                try:
                    recording = read_recording(source.read(frame.file))
                except BadFile as error:
                    recording = error
                self._recordings.put(key, recording)
        if isinstance(recording, BadFile):
            raise type(recording)(recording.reason, frame.file)
        return recording


def camera_time(content: bytes) -> int:
    """cam_tstamp [us] of a camera JSON.

    Raises:
        BadFile: It has none.
    """
    try:
        return int(json.loads(content)["cam_tstamp"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise BadFile("camera JSON has no cam_tstamp, a time in microseconds") from error


def read_recording(content: bytes) -> Recording:
    """The signals of a bus file of either shape.

    Raises:
        BadFile: It is not JSON, has neither shape, or a signal in another unit.
    """
    try:
        parsed = json.loads(content, object_hook=_signal_or_dict)
    except (ValueError, RecursionError) as error:
        raise BadFile(f"is {not_json(content, error)}") from error
    if isinstance(parsed, dict):
        samples = {name: [signal] for name, signal in parsed.items() if isinstance(signal, Signal)}
        named: dict[tuple[str, int], int] = {}
    elif isinstance(parsed, list):
        samples, named = _of_entries(parsed)
    else:
        samples = {}
    if not samples and parsed != []:
        raise BadFile(
            "expected bus signals, {signal: {unit, values}} or a list of "
            "{frame_name, timestamp, flexray}"
        )
    signals = {name: _joined(parts) for name, parts in samples.items()}
    _check_units(signals)
    return Recording(signals, named)


def _signal_or_dict(entry: dict[str, Any]) -> object:
    """A JSON object; a signal's samples become arrays as soon as they are read, to save memory."""
    values = entry.get("values")
    if not isinstance(values, list):
        return entry
    try:
        if "timestamps" in entry:
            times = np.asarray(entry["timestamps"], dtype=np.float64)
            numbers = np.asarray(values, dtype=np.float64)
        else:
            pairs = np.asarray(values, dtype=np.float64).reshape(-1, 2)
            times, numbers = pairs[:, 0], pairs[:, 1]
        if times.shape != numbers.shape or times.ndim != 1:
            raise BadFile("bus signal: as many timestamps as values are expected")
    except (ValueError, TypeError) as error:
        raise BadFile(f"bus signal: expected numbers: {error}") from error
    known = np.isfinite(times) & np.isfinite(numbers)
    unit = entry.get("unit")
    # Microseconds since 1970 are exact in a double until the year 2255.
    return Signal(
        times[known].astype(np.int64), numbers[known], unit if isinstance(unit, str) else None
    )


def _of_entries(
    entries: list[Any],
) -> tuple[dict[str, list[Signal]], dict[tuple[str, int], int]]:
    samples: dict[str, list[Signal]] = {}
    named: dict[tuple[str, int], int] = {}
    for entry in entries:
        flexray = entry.get("flexray") if isinstance(entry, dict) else None
        if not isinstance(flexray, dict):
            raise BadFile("bus entry: expected {frame_name, timestamp, flexray}")
        for name, signal in flexray.items():
            if isinstance(signal, Signal):
                samples.setdefault(name, []).append(signal)
        name = _FRAME_NAME.fullmatch(str(entry.get("frame_name")))
        time = entry.get("timestamp")
        if name is not None and isinstance(time, int | float):
            named[name["camera"], int(name["number"])] = int(time)
    return samples, named


def _joined(parts: list[Signal]) -> Signal:
    times = np.concatenate([signal.times for signal in parts])
    values = np.concatenate([signal.values for signal in parts])
    order = np.argsort(times, kind="stable")
    units = {signal.unit for signal in parts if signal.unit is not None}
    if len(units) > 1:
        raise BadFile(f"bus signal in several units: {', '.join(sorted(units))}")
    return Signal(times[order], values[order], units.pop() if units else None)


def _check_units(signals: Mapping[str, Signal]) -> None:
    expected = dict(PLAIN.values()) | {name: _DEGREES for name, _ in SIGNED.values()}
    for name, unit in expected.items():
        actual = signals[name].unit if name in signals else None
        if actual is not None and actual != unit:
            raise BadFile(f"bus signal {name} is in {actual}, expected {unit}")


def _sample(
    recording: Recording, name: str, time: int, tolerance_us: float
) -> tuple[int, float] | None:
    signal = recording.signals.get(name)
    return signal.nearest(time, tolerance_us) if signal is not None else None


def _signed(
    recording: Recording, name: str, sign: str, time: int, tolerance_us: float
) -> float | None:
    sample = _sample(recording, name, time, tolerance_us)
    minus = _sample(recording, sign, sample[0], tolerance_us) if sample else None
    if sample is None or minus is None or minus[1] not in (0.0, 1.0):
        return None
    return -sample[1] if minus[1] else sample[1]
