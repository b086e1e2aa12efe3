"""The icons of the console."""

import re
from xml.etree import ElementTree

from blueprints.console.icons import ICONS
from blueprints.console.pages import MENU
from tests.support import ROOT

TEMPLATES = ROOT / "blueprints" / "templates" / "console"


def test_an_icon_is_valid_and_inside_its_square():
    for name, drawn in ICONS.items():
        drawing = ElementTree.fromstring(f"<svg>{drawn}</svg>")
        assert len(drawing), name
        for circle in drawing.iter("circle"):
            x, y, radius = (float(circle.get(each)) for each in ("cx", "cy", "r"))
            assert radius <= min(x, y) <= max(x, y) <= 24 - radius, name


def test_every_icon_of_a_template_exists_and_each_item_of_the_menu_has_its_own():
    names = [item.icon for _, items in MENU for item in items]
    assert len(set(names)) == len(names)
    texts = [file.read_text("utf-8") for file in TEMPLATES.rglob("*.html")]
    used = {name for text in texts for name in re.findall(r"icon\('([a-z-]+)'\)", text)}
    assert used
    assert used | set(names) <= set(ICONS)
