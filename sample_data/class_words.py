"""Which class of another data set a drawn class becomes, by tag."""

from collections.abc import Mapping

from ingest.labels.class_list import ClassKey, ClassList, tag_name
from sample_data.classes import CLASS_OF_ENTRY, ENTRIES

_ROAD = ("road",)
_SIDEWALK = ("sidewalk", "pavement", "pavementmerged")
_FENCE = ("fence", "fencemerged")
_MARKING = ("general", "lanemkgsdriv", *_ROAD)
_SIGNAL = ("traffic_light", "trafficlight")
_SIGN = ("traffic_sign", "signsymbol", "traffic_sign_front", "signboard")
_POLE = ("pole", "columnpole")

TAGS: Mapping[str, tuple[str, ...]] = {
    "Bicycle": ("bicycle", "bicyclist"),
    "Pedestrian": ("pedestrian", "person"),
    "Truck": ("truck", "truckbus"),
    "Small vehicles": ("motorcycle", "motorcyclescooter", "minibike"),
    "Traffic signal": _SIGNAL,
    "Traffic sign": _SIGN,
    "Utility vehicle": ("vehicle_fallback", "other_vehicle", "othermoving", "truck"),
    "Sidebars": _FENCE,
    "Speed bumper": _ROAD,
    "Curbstone": ("curb", *_SIDEWALK),
    "Solid line": _MARKING,
    "Road blocks": ("guard_rail", "other_barrier", *_FENCE),
    "Tractor": ("vehicle_fallback", "other_vehicle", "othermoving", "truck"),
    "Non-drivable street": (
        "nondrivable_fallback",
        "terrain",
        "roadshoulder",
        "grass",
        "grassmerged",
    ),
    "Zebra crossing": ("crosswalk_zebra", *_MARKING),
    "Poles": _POLE,
    "Animals": ("ground_animal", "animal"),
    "Grid structure": _FENCE,
    "Signal corpus": (*_SIGNAL, *_POLE),
    "Drivable cobblestone": _ROAD,
    "RD restricted area": _ROAD,
    "Slow drive area": _ROAD,
    "Nature object": ("vegetation", "tree", "treemerged"),
    "Parking area": ("parking", "parkingblock", *_ROAD),
    "Sidewalk": _SIDEWALK,
    "Ego car": ("ego_vehicle",),
    "Painted driv. instr.": _MARKING,
    "Traffic guide obj.": ("trafficcone", "obsstrbarfallback"),
    "Dashed line": _MARKING,
    "RD normal street": _ROAD,
    "Sky": ("skyother", "skyothermerged"),
    "Buildings": ("building", "buildingother", "buildingothermerged"),
}
"""Drawn class -> tags of classes that it may become beside its own tag, the best first.

What is not named, and finds none of these, becomes the first class that is ignored.
"""


def class_of_entry(classes: ClassList) -> tuple[ClassKey | None, ...]:
    """For each entry of the drawn class list the key that it becomes.

    None where the classes have none for it, and none that is ignored: a key of no class.
    """
    by_tag: dict[str, ClassKey] = {}
    for key, class_id in zip(classes.keys, classes.class_ids, strict=True):
        by_tag.setdefault(classes.tags[class_id], key)
    listed = {key.listed_name: key for key in classes.keys}
    void = next((key for key in classes.keys if key.ignore), None)

    def key_of(entry: str, name: str) -> ClassKey | None:
        if entry in listed:
            return listed[entry]
        tags = (tag_name(name), *TAGS.get(name, ()))
        return next((by_tag[tag] for tag in tags if tag in by_tag), void)

    return tuple(map(key_of, ENTRIES, CLASS_OF_ENTRY))
