"""Vehicle bus: both shapes, signs, nearest samples, tolerance, bad files."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.errors import BadFile
from ingest.extractors.bus import Bus, Signal, camera_time, read_recording
from ingest.extractors.run import run_extractor
from tests.ingest.extractors.frames import put_bus, put_camera_json, tags_of, time_us
from tests.ingest.scene_folders import CAR, Home, add_frame, make_tree

TAGS = ("vehicle_speed_kmh", "steering_angle_deg", "latitude_deg", "longitude_deg")


def _fusion(number: int = 1, *, speed: float = 36.5, right: int = 1) -> dict[str, object]:
    """Signals of the sensor fusion set around a frame's time."""
    time = time_us(number)
    degrees = "Unit_DegreOfArc"
    return {
        "vehicle_speed": {"unit": "Unit_KiloMeterPerHour",
                          "values": [[time - 9_000, 1.0], [time + 4_000, speed]]},
        "acceleration_x": {"unit": "Unit_MeterPerSeconSquar", "values": [[time, -0.25]]},
        "brake_pressure": {"unit": "Unit_Bar", "values": [[time, 2.5]]},
        "steering_angle_calculated": {"unit": degrees, "values": [[time, 12.0]]},
        "steering_angle_calculated_sign": {"unit": None, "values": [[time, right]]},
        "latitude_degree": {"unit": degrees, "values": [[time - 400_000, 48.75]]},
        "latitude_direction": {"unit": None, "values": [[time - 400_000, 0]]},
        "longitude_degree": {"unit": degrees, "values": [[time - 400_000, 11.5]]},
        "longitude_direction": {"unit": None, "values": [[time - 400_000, 1]]},
        "distance_pulse_front_left": {"unit": None, "values": []},
    }  # fmt: skip


def _entry(number: int, speed: float, camera: str = "frontcenter") -> dict[str, object]:
    """An entry of the semantic set."""
    time = time_us(number)
    return {
        "frame_name": f"20180807145028_camera_{camera}_{number:09d}.json",
        "timestamp": time,
        "flexray": {
            "vehicle_speed": {"timestamps": [time - 5_000, time + 1_000], "values": [0.0, speed],
                              "unit": "Unit_KiloMeterPerHour"},
            "latitude_degree": {"timestamps": [time], "values": [48.75],
                                "unit": "Unit_DegreOfArc"},
            "latitude_direction": {"timestamps": [time], "values": [1], "unit": None},
        },
    }  # fmt: skip


@pytest.mark.wide
def test_sensor_fusion_shape(home: Home, tmp_path: Path) -> None:
    """The nearest sample to cam_tstamp is taken, with its sign; positions within a second."""
    root = make_tree(tmp_path / "tree", frames=1)
    put_camera_json(root, 1)
    put_bus(root, _fusion())
    source = home.add(root)
    home.scan(source)
    assert run_extractor(home.store, source, Bus()).tagged == 1
    assert tags_of(home, "bus", *TAGS) == {1: (36.5, -12.0, 48.75, -11.5)}
    more = ("acceleration_x_ms2", "acceleration_y_ms2", "brake_pressure_bar")
    assert tags_of(home, "bus", *more) == {1: (-0.25, None, 2.5)}


@pytest.mark.wide
def test_semantic_shape(home: Home, tmp_path: Path) -> None:
    """Frames are joined by name without a camera JSON; other cameras by their cam_tstamp.

    A signal that came with no frame is unknown; a frame neither named nor timed has no tags.
    """
    root = make_tree(tmp_path / "tree", frames=2)
    add_frame(root, 3, [CAR], camera="side_left")
    add_frame(root, 4, [CAR], camera="side_left")
    put_camera_json(root, 3, "side_left")
    put_bus(root, [_entry(1, 10.0), _entry(2, 20.0)])
    source = home.add(root)
    home.scan(source)
    counts = run_extractor(home.store, source, Bus())
    assert (counts.read, counts.tagged, counts.bad_files) == (4, 3, 0)
    assert tags_of(home, "bus", *TAGS) == {
        1: (10.0, None, -48.75, None),
        2: (20.0, None, -48.75, None),
        3: (20.0, None, -48.75, None),  # 33 ms later: within the tolerance
        4: (None,) * 4,
    }


@pytest.mark.wide
def test_tolerance_and_missing_sign(home: Home, tmp_path: Path) -> None:
    """A sample farther off than the tolerance, or one whose sign is not known, is no value."""
    root = make_tree(tmp_path / "tree", frames=1)
    put_camera_json(root, 1)
    signals = _fusion()
    signals["vehicle_speed"] = {"values": [[time_us(1) + 100_001, 50.0]], "unit": None}
    signals["brake_pressure"] = {"values": [[time_us(1) + 100_000, 1.5]], "unit": None}
    del signals["latitude_direction"]
    signals["longitude_direction"] = {"values": [[time_us(1) - 400_000, 7]], "unit": None}
    put_bus(root, signals)
    source = home.add(root)
    home.scan(source)
    run_extractor(home.store, source, Bus())
    tags = tags_of(home, "bus", "vehicle_speed_kmh", "brake_pressure_bar", *TAGS[2:])
    assert tags == {1: (None, 1.5, None, None)}


@given(
    st.lists(st.tuples(st.integers(0, 1_000), st.floats(-9, 9)), max_size=20),
    st.integers(-50, 1_050),
    st.integers(0, 60),
)
def test_nearest_is_the_nearest(
    samples: list[tuple[int, float]], time: int, tolerance: int
) -> None:
    """nearest() finds what looking at every sample finds."""
    ordered = sorted(samples, key=lambda sample: sample[0])
    signal = Signal(
        np.array([at for at, _ in ordered], dtype=np.int64), np.array([v for _, v in ordered])
    )
    nearest = signal.nearest(time, tolerance)
    gaps = [abs(at - time) for at, _ in samples]
    if not gaps or min(gaps) > tolerance:
        assert nearest is None
    else:
        assert nearest in samples
        assert nearest is not None
        assert abs(nearest[0] - time) == min(gaps)


def test_unordered_samples_are_put_in_order() -> None:
    """Samples that come in any order, and entries that overlap, are joined by time."""
    late, early = _entry(2, 20.0), _entry(1, 10.0)
    recording = read_recording(json.dumps([late, early]).encode())
    times = recording.signals["vehicle_speed"].times.tolist()
    assert times == sorted(times)
    assert len(times) == 4


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"7",
        b"{}",
        b'{"vehicle_speed": {"unit": "Unit_MilePerHour", "values": [[1, 2]]}}',
        b'{"vehicle_speed": {"values": [[1, 2, 3]]}}',
        b'{"vehicle_speed": {"values": ["fast"]}}',
        b'{"vehicle_speed": {"timestamps": [1, 2], "values": [1]}}',
        b'[{"frame_name": "x"}]',
        b"[7]",
    ],
)
def test_bad_bus_files(content: bytes) -> None:
    """Anything that is no bus file, or in an unexpected unit, is a bad file and nothing worse."""
    with pytest.raises(BadFile):
        read_recording(content)


def test_bad_camera_json() -> None:
    """A camera JSON without a time is a bad file."""
    for content in (b"", b"{}", b"[]", b'{"cam_tstamp": "noon"}'):
        with pytest.raises(BadFile, match="cam_tstamp"):
            camera_time(content)


def test_real_camera_json(a2d2_root: Path) -> None:
    """The time of a real camera JSON lies in its recording's day."""
    real = a2d2_root / "other" / "20180807145028_camera_frontcenter_000028313.json"
    assert camera_time(real.read_bytes()) == 1533647182922733
