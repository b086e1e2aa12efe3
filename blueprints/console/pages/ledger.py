"""The page of the books: every balance, whether the ledger verifies, and the heads that an auditor keeps."""

from __future__ import annotations

import json
import time
from typing import Any

from flask import Response, flash, redirect
from flask_admin import expose
from flask_babel import gettext, lazy_gettext

from blueprints.console import access, labels
from blueprints.console.alert_texts import ago
from blueprints.console.forms import told
from blueprints.console.layout import Page
from blueprints.console.locale import local_time, yuan
from runtime import current
from services.errors import OperatorError
from services.ledger import accounts as books
from services.ledger import integrity, scheduled_checks
from services.security import audit


def owed(fen: int) -> str:
    """A channel's clearing balance in words."""
    if fen < 0:
        return gettext("The channel owes you %(amount)s.", amount=yuan(-fen))
    return gettext("You owe the channel %(amount)s.", amount=yuan(fen)) if fen else gettext("Nothing is owed.")


def owed_by_all(fen: int) -> str:
    """All channels' clearing balances together, in words."""
    if fen < 0:
        return gettext("The channels owe you %(amount)s.", amount=yuan(-fen))
    return gettext("You owe the channels %(amount)s.", amount=yuan(fen)) if fen else gettext("Nothing is owed.")


class Ledger(Page):
    """Balances and their proof."""

    @expose("/")
    def index(self) -> str:
        """All balances, and the runs of the verification."""
        return self.render(
            "console/ledger.html",
            sheet=books.sheet(),
            runs=scheduled_checks.recent(),
            state=scheduled_checks.state,
            last=scheduled_checks.last(),
            running=scheduled_checks.running(),
            every=current().settings.verify_every,
            ago=ago,
            owed=owed,
            owed_by_all=owed_by_all,
            words=labels,
        )

    @expose("/verify", methods=["POST"])
    def verify(self) -> Any:
        """Begin to verify in the background."""
        actor = access.actor()
        try:
            audit.act(actor, "verify ledger", "ledger", "", lambda: scheduled_checks.start(actor.who))
        except OperatorError as refusal:
            flash(gettext("Not done: %(why)s.", why=told(refusal)), "bad")
        else:
            flash(gettext("The ledger is being verified. Reload the page to see what came of it."), "good")
        return redirect(self.get_url(".index"), 303)

    @expose("/heads.json")
    def heads(self) -> Response:
        """How far each account's chain goes: what `flask ledger verify --against` takes."""
        text = json.dumps(integrity.head_rows(), ensure_ascii=False, indent=2) + "\n"
        name = f"heads-{local_time(int(time.time())):%Y-%m-%d-%H%M}.json"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(text, content_type="application/json", headers=headers)


def views() -> list[Any]:
    """For the menu."""
    return [Ledger(lazy_gettext("Balances"), endpoint="ledger", url="/ledger", category=lazy_gettext("Money"))]
