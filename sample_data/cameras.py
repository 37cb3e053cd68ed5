"""The six cameras of the sample vehicle and their projection.

Vehicle frame: x forward, y left, z up, in metres; the ground is the plane z = 0.
"""

from dataclasses import dataclass, field
from math import cos, radians, sin

Point3 = tuple[float, float, float]
Point2 = tuple[float, float]

WIDTH_PX = 1920
HEIGHT_PX = 1208
NEAR_M = 0.25
"""Everything nearer than this along the optical axis is cut away."""


@dataclass(frozen=True)
class Camera:
    """A pinhole camera."""

    name: str
    """Name in folder and calibration file, such as "front_center"."""
    position: Point3
    """Of the optical centre in the vehicle frame, metres."""
    yaw_deg: float
    """Turn to the left of straight ahead."""
    pitch_deg: float
    """Tilt below the horizontal."""
    focal_px: float
    """Focal length in both directions."""
    centre_px: Point2
    """Principal point (x, y)."""
    forward: Point3 = field(init=False)
    left: Point3 = field(init=False)
    up: Point3 = field(init=False)

    def __post_init__(self) -> None:
        yaw, pitch = radians(self.yaw_deg), radians(self.pitch_deg)
        set_axis = object.__setattr__
        set_axis(self, "forward", (cos(yaw) * cos(pitch), sin(yaw) * cos(pitch), -sin(pitch)))
        set_axis(self, "left", (-sin(yaw), cos(yaw), 0.0))
        set_axis(self, "up", (cos(yaw) * sin(pitch), sin(yaw) * sin(pitch), cos(pitch)))

    @property
    def file_token(self) -> str:
        """The camera's part of a file name, such as "frontcenter"."""
        return self.name.replace("_", "")

    def depth_m(self, point: Point3) -> float:
        """Distance of a point along the optical axis, negative behind the camera."""
        return self._camera_frame(point)[2]

    def project(self, points: list[Point3]) -> tuple[list[Point2], float]:
        """A polygon's outline in the picture.

        Returns:
            Image points (x to the right, y down, pixels) of the part in front of the camera, and
            the mean depth of that part in metres; no points when nothing of it can be seen.
        """
        visible = _clip_near([self._camera_frame(point) for point in points])
        if not visible:
            return [], 0.0
        depth = sum(z for _, _, z in visible) / len(visible)
        centre_x, centre_y = self.centre_px
        focal = self.focal_px
        flat = [(centre_x + focal * x / z, centre_y + focal * y / z) for x, y, z in visible]
        xs = [x for x, _ in flat]
        ys = [y for _, y in flat]
        if max(xs) < 0 or min(xs) > WIDTH_PX or max(ys) < 0 or min(ys) > HEIGHT_PX:
            return [], 0.0
        return flat, depth

    def _camera_frame(self, point: Point3) -> Point3:
        """A point as (right, down, forward) of the camera, metres."""
        dx = point[0] - self.position[0]
        dy = point[1] - self.position[1]
        dz = point[2] - self.position[2]
        left, up, forward = self.left, self.up, self.forward
        return (
            -(dx * left[0] + dy * left[1]),
            -(dx * up[0] + dy * up[1] + dz * up[2]),
            dx * forward[0] + dy * forward[1] + dz * forward[2],
        )


def _clip_near(points: list[Point3]) -> list[Point3]:
    """The part of a polygon at least `NEAR_M` in front of the camera."""
    if min(point[2] for point in points) >= NEAR_M:
        return points
    clipped: list[Point3] = []
    for first, second in zip(points, points[1:] + points[:1], strict=True):
        if first[2] >= NEAR_M:
            clipped.append(first)
        if (first[2] >= NEAR_M) != (second[2] >= NEAR_M):
            share = (NEAR_M - first[2]) / (second[2] - first[2])
            clipped.append(
                (
                    first[0] + share * (second[0] - first[0]),
                    first[1] + share * (second[1] - first[1]),
                    NEAR_M,
                )
            )
    return clipped


CAMERAS: dict[str, Camera] = {
    camera.name: camera
    for camera in (
        Camera("front_left", (1.72, 0.55, 1.42), 32.0, 1.0, 880.0, (958.0, 622.0)),
        Camera("front_right", (1.72, -0.55, 1.42), -32.0, 1.0, 878.0, (963.0, 620.0)),
        Camera("front_center", (1.74, 0.0, 1.42), 0.0, 0.8, 1710.0, (961.0, 664.0)),
        Camera("side_left", (0.66, 0.56, 1.40), 91.0, 11.0, 872.0, (955.0, 618.0)),
        Camera("side_right", (0.66, -0.56, 1.40), -91.0, 11.0, 875.0, (966.0, 621.0)),
        Camera("rear_center", (-0.42, 0.0, 1.40), 180.0, 2.0, 881.0, (960.0, 619.0)),
    )
}
