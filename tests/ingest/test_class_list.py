"""The class list: colours, classes, tag names, and lists that cannot be used."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from catalog.errors import InvalidInput
from ingest.labels.class_list import UNKNOWN_CLASS, ClassList, tag_name

A2D2_TAGS = """
    car bicycle pedestrian truck small_vehicles traffic_signal traffic_sign utility_vehicle
    sidebars speed_bumper curbstone solid_line irrelevant_signs road_blocks tractor
    nondrivable_street zebra_crossing obstacles_trash poles rd_restricted_area animals
    grid_structure signal_corpus drivable_cobblestone electronic_traffic slow_drive_area
    nature_object parking_area sidewalk ego_car painted_driv_instr traffic_guide_obj dashed_line
    rd_normal_street sky buildings blurred_area rain_dirt
"""


def test_a2d2_has_55_colours_and_38_classes(palette: ClassList) -> None:
    """Numbered entries ("Car 1" to "Car 4") are one class: 55 colours, 38 classes."""
    assert (len(palette.keys), len(palette)) == (55, 38)
    assert palette.classes[:2] == ("Car", "Bicycle")
    assert palette.class_of_key[0xFF0000] == palette.class_of_key[0x800000] == 0


def test_a2d2_tags_are_spelled_as_the_proof_of_concept_spells_them(palette: ClassList) -> None:
    """All 38 tags, in the class list's order, as Spectrum Discover clients name them."""
    assert list(palette.tags) == A2D2_TAGS.split()


@pytest.mark.parametrize(
    ("name", "tag"),
    [
        ("Non-drivable street", "nondrivable_street"),
        ("Obstacles / trash", "obstacles_trash"),
        ("Painted driv. instr.", "painted_driv_instr"),
        ("Traffic guide obj.", "traffic_guide_obj"),
        ("  RD   normal street ", "rd_normal_street"),
        ("Straße 3", "strae_3"),
        ("!?", ""),
    ],
)
def test_tag_name(name: str, tag: str) -> None:
    """Lower case; letters, digits and blanks stay; runs of blanks become one underscore."""
    assert tag_name(name) == tag


def test_classes_keep_the_order_of_the_list() -> None:
    """A class stands where its first colour stands, and class_colours draws it with that one."""
    palette = ClassList.from_colours({"#0000ff": "B 2", "#00ff00": "A", "#0000FE": "B 1"})
    assert palette.classes == ("B", "A")
    assert palette.class_ids == (0, 1, 0)
    assert palette.class_colours.tolist() == [[0, 0, 255], [0, 255, 0]]


def test_one_digit_numbers_instances_and_a_longer_number_is_a_name() -> None:
    """A2D2 numbers instances 1 to 4; classes called "Zone 10" and "Zone 11" are not merged."""
    names = ("Car 1", "Car 2", "Zone 10", "Zone 11", "Zone10", "Zone 1")
    listed = {f"#{number:06x}": name for number, name in enumerate(names)}
    palette = ClassList.from_colours(listed)
    assert palette.classes == ("Car", "Zone 10", "Zone 11", "Zone10", "Zone")
    assert palette.class_ids == (0, 0, 1, 2, 3, 4)


def test_lookup_table_knows_every_colour_and_no_other(palette: ClassList) -> None:
    """The look-up table and class_of_colour are the same mapping, 255 elsewhere."""
    known = np.flatnonzero(palette.lookup_table != UNKNOWN_CLASS)
    assert {int(c): int(palette.lookup_table[c]) for c in known} == palette.class_of_key


@pytest.mark.parametrize(
    ("listed", "named"),
    [
        ({}, "expected an object"),
        ([], "expected an object"),
        ("#ff0000", "expected an object"),
        ({"red": "Car"}, "'red'"),
        ({"#ff00": "Car"}, "'#ff00'"),
        ({"#ff0000 ": "Car"}, "'#ff0000 '"),
        ({"ff0000": "Car"}, "'ff0000'"),
        ({7: "Car"}, "7 is not a colour"),
        ({"#ff0000": ""}, "#ff0000"),
        ({"#ff0000": "  "}, "#ff0000"),
        ({"#ff0000": None}, "#ff0000"),
        ({"#ff0000": ["Car"]}, "#ff0000"),
        ({"#ff0000": "Car", "#FF0000": "Truck"}, "#ff0000"),
        ({"#ff0000": "Car", "#00ff00": "c.a.r"}, "Car, c.a.r"),
        ({"#ff0000": "Car", "#00ff00": "!?"}, "!?"),
        ({f"#{n:06x}": f"class {n}x" for n in range(256)}, "256 classes"),
    ],
)
def test_bad_lists_name_the_entry(listed: Mapping[str, Any], named: str) -> None:
    """Each list that cannot be used is InvalidInput, one line, naming the entry."""
    with pytest.raises(InvalidInput) as error:
        ClassList.from_colours(listed)
    assert named in str(error.value)
    assert "\n" not in str(error.value)
