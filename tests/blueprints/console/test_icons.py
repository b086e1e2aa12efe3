"""The icons of the console."""

import re

from blueprints.console.icons import ICONS
from blueprints.console.pages import MENU
from tests.support import ROOT

TEMPLATES = ROOT / "blueprints" / "templates" / "console"


def test_every_icon_of_a_template_exists_and_each_item_of_the_menu_has_its_own():
    names = [item.icon for _, items in MENU for item in items]
    assert len(set(names)) == len(names)
    texts = [file.read_text("utf-8") for file in TEMPLATES.rglob("*.html")]
    used = {name for text in texts for name in re.findall(r"icon\('([a-z-]+)'\)", text)}
    assert used
    assert used | set(names) <= set(ICONS)
