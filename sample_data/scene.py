"""Decides what stands where in a frame; everything random comes from the given generator."""

from collections.abc import Callable
from dataclasses import dataclass
from math import hypot, pi, sqrt

import numpy as np

from sample_data import barriers, people, roadside, vehicles
from sample_data.cameras import Camera
from sample_data.classes import class_id
from sample_data.painter import Painter
from sample_data.shapes import Pose
from sample_data.street import Street
from sample_data.styles import SceneStyle

Paint = Callable[[Painter], None]


@dataclass(frozen=True)
class Thing:
    """An object of a scene."""

    distance_m: float
    """From the camera; farther things are painted first."""
    paint: Paint
    """Paints it."""


class Composer:
    """Collects the things of one frame.

    Attributes:
        things: What was placed so far.
    """

    def __init__(
        self, camera: Camera, style: SceneStyle, street: Street, rng: np.random.Generator
    ) -> None:
        self.camera = camera
        self.style = style
        self.street = street
        self.rng = rng
        self.things: list[Thing] = []
        self._taken: list[tuple[float, float]] = []
        self.near_m, self.far_m = _stretch(camera)

    def place_surroundings(self) -> None:
        """Places what stands still beside the road."""
        self._place_buildings()
        self._place_vegetation()
        self._place_furniture()
        self._place_barriers()

    def place_traffic(self, cyclists: int) -> None:
        """Places vehicles and people, among them exactly `cyclists` cyclists."""
        style = self.style
        self._place_parked_cars()
        for _ in range(self._number(style.trucks)):
            self._place_vehicle(vehicles.paint_truck, room_m=13.0, nearest_m=20.0)
        for _ in range(self._number(style.cars)):
            self._place_vehicle(vehicles.paint_car, room_m=8.0, nearest_m=8.0)
        for _ in range(self._number(style.utility_vehicles)):
            self._place_at_verge(vehicles.paint_utility_vehicle, 12.0)
        for _ in range(self._number(style.tractors)):
            self._place_at_verge(lambda p, pose, _: vehicles.paint_tractor(p, pose), 10.0)
        for _ in range(self._number(style.pedestrians)):
            self._place_pedestrian()
        for _ in range(self._number(style.small_vehicles)):
            x, y, _ = self.street.point(self._along(10.0), self._oncoming_lane())
            self._add(x, y, _seeded(people.paint_motorcycle, x, y, self._seed()))
        for number in range(cyclists):
            self._place_cyclist(first=number == 0)
        if self.rng.random() < 0.04 and style.sidewalk:
            x, y, _ = self.street.point(self._along(6.0), self.street.kerb_right_m - 1.2)
            self._add(x, y, lambda p: people.paint_dog(p, x, y, class_id("Animals")))

    def _place_buildings(self) -> None:
        start = self.near_m - 30.0
        for sign, edge in ((1.0, self.street.outer_left_m), (-1.0, self.street.outer_right_m)):
            x = start
            while x < self.far_m + 60:
                length = 9.0 + 8.0 * float(self.rng.random())
                if self.rng.random() < self.style.built_up:
                    depth = 8.0 + 3.0 * float(self.rng.random())
                    size = (length, depth, 4.0 + 9.0 * float(self.rng.random()))
                    gap = 7.0 if self.style.median and sign > 0 else 1.0
                    gap += 4.0 * float(self.rng.random()) * (self.style.built_up < 0.7)
                    self._add_building(x + length / 2, edge + sign * (gap + depth / 2), size)
                x += length + (0.2 if self.style.built_up > 0.7 else 2.0)

    def _add_building(self, x: float, offset: float, size: tuple[float, float, float]) -> None:
        _, y, _ = self.street.point(x, offset)
        pose = Pose(x, y, self.street.direction(x))
        seed = self._seed()
        eye = self.camera.position
        farthest = hypot(abs(x - eye[0]) + size[0] / 2, abs(y - eye[1]) + size[1] / 2)
        self.things.append(
            Thing(
                farthest,
                lambda p: roadside.paint_building(p, pose, size, np.random.default_rng(seed)),
            )
        )

    def _place_vegetation(self) -> None:
        foliage = self.style.foliage
        for sign, edge in ((1.0, self.street.outer_left_m), (-1.0, self.street.outer_right_m)):
            x = self.near_m - 6.0
            while x < self.far_m + 80:
                x += 10.0 * (0.6 + 0.8 * float(self.rng.random()))
                if self.rng.random() >= self.style.wooded:
                    continue
                far_out = 1.5 + 9.0 * float(self.rng.random()) * (self.style.built_up < 0.5)
                _, y, _ = self.street.point(x, edge + sign * far_out)
                if self.rng.random() < 0.3:
                    self._add(x, y, _seeded(roadside.paint_bush, x, y, foliage, self._seed()))
                else:
                    tall = 5.0 + 7.0 * float(self.rng.random())
                    self._add(x, y, _seeded(roadside.paint_tree, x, y, tall, foliage, self._seed()))

    def _place_furniture(self) -> None:
        street, style, rng = self.street, self.style, self.rng
        if style.sidewalk:
            first = self.near_m + 20.0 * float(rng.random())
            for step in range(5):
                x, y, _ = street.point(first + 28.0 * step, street.kerb_right_m - 0.6)
                self._add_lamp(x, y)
            for kind, chance in _FURNITURE:
                if rng.random() < chance:
                    side = (
                        street.kerb_right_m - 2.3
                        if rng.random() < 0.6
                        else street.kerb_left_m + 2.3
                    )
                    self._add_simple(kind, self._along(7.0), side)
            for step in range(int(6 * rng.random())):
                self._add_simple("Poles", self.near_m + 9 + 3.0 * step, street.kerb_left_m + 0.5)
        for _ in range(1 + int(3 * rng.random())):
            side = street.kerb_right_m - 0.7 if rng.random() < 0.7 else street.kerb_left_m + 0.7
            x, y, _ = street.point(self._along(10.0), side)
            self._add(x, y, _seeded(roadside.paint_sign, x, y, self._seed()))
        if style.signals and rng.random() < 0.75:
            at = self._along(16.0)
            for side in (street.kerb_right_m - 0.5, street.kerb_left_m + 0.5):
                x, y, _ = street.point(at, side)
                self._add(x, y, _seeded(roadside.paint_signal, x, y, self._seed()))

    def _place_barriers(self) -> None:
        street, style = self.street, self.style
        start = self.near_m - 12.0
        for step in range(36):
            x = start + 4.0 * step
            if style.guard_rail:
                for side in (street.lanes_left_m + 1.4, street.lanes_right_m - 2.7):
                    self._add_along(barriers.paint_guard_rail, x, side)
            if style.fence and step % 5 and step < 25:
                self._add_along(
                    barriers.paint_fence, start + 5.0 * step, street.outer_right_m - 3.0
                )
            if style.delineators and step % 5 == 0:
                for side in (street.lanes_right_m - 1.2, street.lanes_left_m + 1.0):
                    self._add_simple("Sidebars", start + 5.0 * step, side)
        if style.construction:
            first = 9.0 + 12.0 * float(self.rng.random())
            for step in range(7):
                self._add_simple(
                    "Traffic guide obj.", first + 3.0 * step, street.lanes_right_m + 0.2
                )
            self._add_along(barriers.paint_barrier, first + 22.0, street.lanes_right_m - 0.9)

    def _place_parked_cars(self) -> None:
        if not self.style.parking:
            return
        for side, heading in (
            (self.street.lanes_right_m - 1.15, 0.0),
            (self.street.lanes_left_m + 1.15, pi),
        ):
            for slot in range(9):
                x = self.near_m + 3.0 + 6.0 * slot
                if x < self.far_m and self.rng.random() < 0.09 * self.style.cars:
                    self._add_vehicle(vehicles.paint_car, x, side, heading)

    def _place_vehicle(
        self,
        paint: Callable[[Painter, Pose, np.random.Generator], None],
        room_m: float,
        nearest_m: float,
    ) -> None:
        """Puts a moving vehicle on a free stretch of some lane; gives up after four tries."""
        style = self.style
        for _ in range(4):
            lane = int(self.rng.integers(-style.lanes_right, style.lanes_left + 1))
            own_lane = lane == 0
            x = self._along(nearest_m + (6.0 if own_lane else 0.0))
            offset = lane * style.lane_m + 0.3 * (float(self.rng.random()) - 0.5)
            at_camera = self.near_m < 0 < self.far_m
            if (own_lane and abs(x) < 9) or (at_camera and abs(x) < 0.6 * room_m):
                continue
            if any(abs(lane - at) < 0.5 and abs(x - other) < room_m for at, other in self._taken):
                continue
            self._taken.append((lane, x))
            against = lane > style.lanes_left - style.oncoming
            self._add_vehicle(paint, x, offset, pi if against else 0.0)
            return

    def _place_at_verge(
        self, paint: Callable[[Painter, Pose, np.random.Generator], None], nearest_m: float
    ) -> None:
        self._add_vehicle(paint, self._along(nearest_m), self.street.outer_right_m - 1.6, 0.2)

    def _add_vehicle(
        self,
        paint: Callable[[Painter, Pose, np.random.Generator], None],
        x: float,
        offset: float,
        heading: float,
    ) -> None:
        _, y, _ = self.street.point(x, offset)
        pose = Pose(x, y, self.street.direction(x) + heading)
        seed = self._seed()
        self._add(x, y, lambda p: paint(p, pose, np.random.default_rng(seed)))

    def _place_pedestrian(self) -> None:
        walk = 0.5 + 1.8 * float(self.rng.random())
        right = self.rng.random() < 0.6
        side = self.street.kerb_right_m - walk if right else self.street.kerb_left_m + walk
        x, y, _ = self.street.point(self._along(8.0), side)
        self._add(x, y, _seeded(people.paint_pedestrian, x, y, self._seed()))
        if self.rng.random() < 0.35:
            second_y = y + (0.75 if right else -0.75)
            self._add(x, second_y, _seeded(people.paint_pedestrian, x, second_y, self._seed()))

    def _place_cyclist(self, *, first: bool) -> None:
        """Puts a bicycle at the roadside; the first of a frame is near enough to be seen."""
        parked = not first and self.rng.random() < 0.5
        side = self.street.kerb_right_m - 1.9 if parked else self.street.lanes_right_m + 0.7
        x, y, _ = self.street.point(self._along(10.0, 22.0 if first else 45.0), side)
        paint = people.paint_parked_bicycle if parked else people.paint_cyclist
        self._add(x, y, _seeded(paint, x, y, self._seed()))

    def _oncoming_lane(self) -> float:
        return self.style.lanes_left * self.style.lane_m

    def _add_simple(self, kind: str, x: float, offset: float) -> None:
        _, y, _ = self.street.point(x, offset)
        self._add(x, y, lambda p: roadside.paint_simple(p, kind, x, y))

    def _add_lamp(self, x: float, y: float) -> None:
        self._add(x, y, lambda p: roadside.paint_lamp(p, x, y, 1.0))

    def _add_along(
        self, paint: Callable[[Painter, Street, float, float], None], x: float, offset: float
    ) -> None:
        _, y, _ = self.street.point(x, offset)
        self._add(x, y, lambda p: paint(p, self.street, x, offset))

    def _add(self, x: float, y: float, paint: Paint) -> None:
        eye = self.camera.position
        self.things.append(Thing(hypot(x - eye[0], y - eye[1]), paint))

    def _along(self, nearest_m: float, farthest_m: float = 500.0) -> float:
        """A place along the street that the camera sees, more often near than far."""
        near, far = self.near_m, min(self.far_m, farthest_m)
        share = float(self.rng.random())
        if near < 0 < far:
            return near + (far - near) * share
        if far <= 0:
            return min(-nearest_m, far) + (max(near, -farthest_m) - far) * share * sqrt(share)
        near = max(near, nearest_m)
        return near + (far - near) * share * sqrt(share)

    def _number(self, rate: float) -> int:
        """A whole number whose mean is `rate`."""
        return int(rate * (0.5 + float(self.rng.random())) + float(self.rng.random()))

    def _seed(self) -> int:
        """A seed of its own for an object, so that it looks the same whenever it is painted."""
        return int(self.rng.integers(2**32))


_FURNITURE = (
    ("Obstacles / trash", 0.3),
    ("Electronic traffic", 0.2),
    ("Irrelevant signs", 0.35),
)


def _stretch(camera: Camera) -> tuple[float, float]:
    """The part of the street a camera sees, metres ahead."""
    if camera.name == "rear_center":
        return -90.0, -5.0
    if camera.name.startswith("side"):
        return -11.0, 13.0
    return (2.0, 70.0) if camera.name != "front_center" else (5.0, 115.0)


def _seeded(paint: Callable[..., None], *arguments: object) -> Paint:
    """A painting call whose last argument is the seed of the object's own generator."""
    *rest, seed = arguments
    assert isinstance(seed, int)
    return lambda p: paint(p, *rest, np.random.default_rng(seed))
