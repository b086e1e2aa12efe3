"""The picture of the architecture (docs/architecture.svg) shows the imports as they are: each arrow, and no other."""

import ast
import re
from itertools import pairwise
from pathlib import PurePath
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from tests.support import ROOT
from tests.test_imports import FOLDERS, IMPORTS, TREES, names

SVG = "{http://www.w3.org/2000/svg}"
PICTURE = ElementTree.parse(ROOT / "docs" / "architecture.svg").getroot()
PACKAGES = {"app", "settings", *FOLDERS}
PART_OF = {"web": "app"}  # one box
STEP = re.compile(r"([MHV])(\d+)(?: (\d+))?")


def _box(rect):
    x, y, width, height = (int(rect.get(name)) for name in ("x", "y", "width", "height"))
    return SimpleNamespace(left=x, top=y, right=x + width, bottom=y + height)


def _corners(path):
    """The points of a path of horizontal and vertical lines."""
    points = []
    for letter, first, second in STEP.findall(path):
        x, y = points[-1] if points else (0, 0)
        points.append({"M": (int(first), int(second or 0)), "H": (int(first), y), "V": (x, int(first))}[letter])
    return points


BOXES = {rect.get("id"): _box(rect) for rect in PICTURE.iter(f"{SVG}rect") if rect.get("id")}
ARROWS = {path.get("id"): _corners(path.get("d")) for path in PICTURE.iter(f"{SVG}path") if path.get("id")}


def _on_edge(point, box):
    x, y = point
    within = box.left <= x <= box.right and box.top <= y <= box.bottom
    return within and (x in (box.left, box.right) or y in (box.top, box.bottom))


def _crosses(start, end, box):
    """Does a line lead through the inside of a box?"""
    (left, right), (top, bottom) = (sorted(pair) for pair in zip(start, end, strict=True))
    return left < box.right and right > box.left and top < box.bottom and bottom > box.top


def test_each_arrow_is_an_import_and_each_import_an_arrow():
    imported = set()
    for file, tree in TREES.items():
        source = PurePath(file).parts[0].removesuffix(".py")
        source = PART_OF.get(source, source)
        found = set().union(*(names(node) for node in ast.walk(tree) if isinstance(node, IMPORTS)))
        imported |= {f"{source}-{target}" for target in found & PACKAGES if target != source}
    assert set(ARROWS) == imported


def test_every_package_has_its_box_with_its_name():
    assert set(BOXES) == PACKAGES
    assert {text.text for text in PICTURE.iter(f"{SVG}text") if text.get("class") == "name"} == PACKAGES


@pytest.mark.parametrize("arrow", ARROWS)
def test_an_arrow_leads_from_the_one_box_to_the_other_and_through_none(arrow):
    source, target = arrow.split("-")
    points = ARROWS[arrow]
    assert _on_edge(points[0], BOXES[source])
    assert _on_edge(points[-1], BOXES[target])
    lines = list(pairwise(points))
    assert [name for name, box in BOXES.items() for line in lines if _crosses(*line, box)] == []


def test_no_two_arrows_lie_on_one_another():
    """They may cross."""
    lines = [(name, sorted(line)) for name, points in ARROWS.items() for line in pairwise(points)]
    covered = [
        (one, other)
        for number, (one, ((x1, y1), (x2, y2))) in enumerate(lines)
        for other, ((x3, y3), (x4, y4)) in lines[number + 1 :]
        if (x1 == x2 == x3 == x4 and y1 < y4 and y3 < y2) or (y1 == y2 == y3 == y4 and x1 < x4 and x3 < x2)
    ]
    assert covered == []
