"""The eight recorded scenes: where they are, when, in what light and how busy."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone

Colour = tuple[int, int, int]


@dataclass(frozen=True)
class Light:
    """Sky and light of a scene."""

    sky_top: Colour
    """Colour at the top of the picture."""
    sky_low: Colour
    """Colour at the horizon; distant things fade into it."""
    tint: tuple[float, float, float]
    """Factor of red, green and blue on every surface."""
    sun: tuple[float, float, float]
    """Direction towards the sun in the vehicle frame, length 1 or less."""
    haze_m: float
    """Distance over which contrast falls to 1/e."""
    cloud_share: float
    """Part of the sky that clouds cover, 0 to 1."""


@dataclass(frozen=True)
class SceneStyle:
    """The look of one recorded scene; rates are expected numbers per frame."""

    recorded: datetime
    """Start of the drive, local time of Europe/Berlin, to the hour."""
    light: Light
    extra_cameras: tuple[str, ...] = ()
    """Cameras recorded besides front_center."""
    lane_m: float = 3.3
    lanes_left: int = 1
    """Lanes left of the car's own; `oncoming` of them run the other way."""
    lanes_right: int = 0
    oncoming: int = 1
    max_curvature: float = 1 / 900
    parking: bool = False
    sidewalk: bool = True
    cobblestone: bool = False
    median: bool = False
    guard_rail: bool = False
    delineators: bool = False
    fence: bool = False
    signals: bool = False
    construction: bool = False
    built_up: float = 0.0
    """Buildings per 10 m and side."""
    wooded: float = 0.5
    """Trees per 10 m and side."""
    foliage: tuple[Colour, ...] = ((88, 118, 52), (70, 104, 48), (104, 128, 62))
    """Base colours of leaves."""
    cars: float = 4.0
    trucks: float = 0.12
    pedestrians: float = 0.0
    bicycles: float = 0.0
    small_vehicles: float = 0.05
    tractors: float = 0.0
    utility_vehicles: float = 0.0


_WINTER, _SUMMER = (timezone(timedelta(hours=hours)) for hours in (1, 2))

_CLEAR = Light((74, 132, 204), (190, 213, 232), (1.0, 0.98, 0.92), (-0.45, 0.5, 0.74), 900, 0.25)
_OVERCAST = Light((150, 160, 170), (206, 210, 212), (0.84, 0.87, 0.9), (0.0, 0.0, 0.6), 420, 0.9)
_AUTUMN = (
    (150, 106, 40),
    (176, 128, 48),
    (120, 98, 44),
    (142, 76, 36),
)

SCENES: tuple[SceneStyle, ...] = (
    SceneStyle(  # city street
        datetime(2026, 6, 16, 9, tzinfo=_SUMMER),
        _CLEAR,
        ("front_left", "side_right"),
        parking=True,
        signals=True,
        built_up=0.75,
        wooded=0.35,
        cars=6,
        pedestrians=1.6,
        bicycles=0.36,
    ),
    SceneStyle(  # quiet residential road
        datetime(2026, 5, 7, 15, tzinfo=_SUMMER),
        _OVERCAST,
        ("rear_center", "front_right"),
        lane_m=3.0,
        parking=True,
        built_up=0.45,
        wooded=0.8,
        cars=3,
        pedestrians=0.6,
        bicycles=0.32,
        small_vehicles=0.4,
    ),
    SceneStyle(  # motorway
        datetime(2026, 7, 21, 11, tzinfo=_SUMMER),
        replace(_CLEAR, cloud_share=0.5, sun=(0.3, -0.6, 0.74)),
        ("rear_center",),
        lane_m=3.7,
        lanes_left=1,
        lanes_right=1,
        oncoming=0,
        max_curvature=1 / 2500,
        sidewalk=False,
        guard_rail=True,
        delineators=True,
        wooded=0.4,
        cars=4,
        trucks=1.6,
        small_vehicles=0.0,
    ),
    SceneStyle(  # country road in autumn
        datetime(2026, 10, 29, 15, tzinfo=_WINTER),
        Light((112, 142, 178), (236, 214, 178), (1.06, 0.93, 0.76), (0.7, 0.5, 0.5), 600, 0.4),
        max_curvature=1 / 500,
        sidewalk=False,
        delineators=True,
        fence=True,
        wooded=0.7,
        foliage=_AUTUMN,
        cars=1.6,
        trucks=0.15,
        tractors=0.6,
    ),
    SceneStyle(  # arterial road with a median
        datetime(2026, 9, 3, 8, tzinfo=_SUMMER),
        Light((96, 146, 206), (226, 222, 206), (1.04, 0.96, 0.84), (0.5, -0.5, 0.7), 700, 0.55),
        ("side_left", "front_left"),
        lane_m=3.4,
        lanes_left=1,
        lanes_right=1,
        oncoming=0,
        median=True,
        signals=True,
        built_up=0.3,
        wooded=0.6,
        cars=7,
        trucks=1.0,
        pedestrians=0.4,
    ),
    SceneStyle(  # industrial estate with road works
        datetime(2026, 3, 11, 13, tzinfo=_WINTER),
        replace(_OVERCAST, sky_top=(136, 156, 182), tint=(0.92, 0.92, 0.92)),
        ("front_right",),
        lane_m=3.5,
        fence=True,
        construction=True,
        built_up=0.35,
        wooded=0.3,
        foliage=((122, 112, 70), (98, 100, 58), (110, 96, 66)),
        cars=2.5,
        trucks=1.2,
        pedestrians=0.25,
        utility_vehicles=0.8,
    ),
    SceneStyle(  # old town
        datetime(2026, 4, 18, 10, tzinfo=_SUMMER),
        replace(_CLEAR, tint=(1.05, 0.97, 0.86), cloud_share=0.1, sun=(-0.2, -0.7, 0.68)),
        ("side_right", "side_left"),
        lane_m=2.9,
        cobblestone=True,
        built_up=0.95,
        wooded=0.12,
        foliage=((126, 152, 70), (108, 140, 66)),
        cars=2.5,
        pedestrians=2.4,
        bicycles=0.36,
        small_vehicles=0.3,
    ),
    SceneStyle(  # suburb at dusk
        datetime(2026, 11, 12, 16, tzinfo=_WINTER),
        Light((42, 54, 84), (196, 150, 130), (0.5, 0.5, 0.58), (-0.8, 0.2, 0.2), 500, 0.6),
        parking=True,
        signals=True,
        built_up=0.5,
        wooded=0.5,
        foliage=_AUTUMN,
        cars=5,
        trucks=0.2,
        pedestrians=0.7,
    ),
)
