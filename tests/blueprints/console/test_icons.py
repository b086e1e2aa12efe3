"""The icons of the console."""

import re
from xml.etree import ElementTree

import pytest

from blueprints.console.icons import ICONS
from blueprints.console.pages import MENU
from tests.support import ROOT

TEMPLATES = ROOT / "blueprints" / "templates" / "console"


@pytest.mark.parametrize("name", ICONS)
def test_an_icon_is_valid_and_inside_its_square(name):
    drawing = ElementTree.fromstring(f"<svg>{ICONS[name]}</svg>")
    assert len(drawing)
    for circle in drawing.iter("circle"):
        x, y, radius = (float(circle.get(each)) for each in ("cx", "cy", "r"))
        assert radius <= x <= 24 - radius
        assert radius <= y <= 24 - radius


def test_every_item_of_the_menu_has_an_icon_of_its_own():
    names = [item.icon for _, items in MENU for item in items]
    assert set(names) <= set(ICONS)
    assert len(set(names)) == len(names)


def test_every_icon_of_a_template_exists():
    texts = [file.read_text("utf-8") for file in TEMPLATES.rglob("*.html")]
    used = {name for text in texts for name in re.findall(r"icon\('([a-z-]+)'\)", text)}
    assert used
    assert used <= set(ICONS)
