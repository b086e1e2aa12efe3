"""The console's first page: is my shop all right?"""

from __future__ import annotations

from flask_admin import AdminIndexView, expose
from flask_babel import lazy_gettext


class Dashboard(AdminIndexView):
    """The first page."""

    def __init__(self) -> None:
        super().__init__(name=lazy_gettext("Overview"), url="/", template="console/dashboard.html")

    @expose("/")
    def index(self) -> str:
        """How the shop is doing."""
        return self.render("console/dashboard.html")
