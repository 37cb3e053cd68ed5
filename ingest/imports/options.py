"""Options of the imports of tags."""

from typing import Literal

LATITUDE, LONGITUDE = "latitude_deg", "longitude_deg"
"""Tags of a frame's position, as the extractor `bus` writes them."""

Key = Literal["filename", "path", "fkey"]
