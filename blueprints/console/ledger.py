"""The page of the books: every balance, whether the ledger verifies, and the heads that an auditor keeps."""

from __future__ import annotations

import json
import time
from typing import Any

from flask import Response, flash, redirect
from flask_admin import expose
from flask_babel import gettext, lazy_gettext

import settings
from blueprints.console import access, words
from blueprints.console.findings import ago
from blueprints.console.forms import told
from blueprints.console.frame import Page
from blueprints.console.local import local_time, yuan
from services import audit, proof, verification
from services import ledger as books
from services.errors import NotPossible


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
            runs=verification.recent(),
            state=verification.state,
            last=verification.last(),
            running=verification.running(),
            every=settings.active().verify_every,
            ago=ago,
            owed=owed,
            owed_by_all=owed_by_all,
            words=words,
        )

    @expose("/verify", methods=["POST"])
    def verify(self) -> Any:
        """Begin to verify in the background."""
        actor = access.actor()
        try:
            audit.act(actor, "verify ledger", "ledger", "", lambda: verification.start(actor.who))
        except NotPossible as refusal:
            flash(gettext("Not done: %(why)s.", why=told(refusal)), "bad")
        else:
            flash(gettext("The ledger is being verified. Reload the page to see what came of it."), "good")
        return redirect(self.get_url(".index"), 303)

    @expose("/heads.json")
    def heads(self) -> Response:
        """How far each account's chain goes: what `flask ledger verify --against` takes."""
        text = json.dumps(proof.head_rows(), ensure_ascii=False, indent=2) + "\n"
        name = f"heads-{local_time(int(time.time())):%Y-%m-%d-%H%M}.json"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(text, content_type="application/json", headers=headers)


def views() -> list[Any]:
    """For the menu."""
    return [Ledger(lazy_gettext("Balances"), endpoint="ledger", url="/ledger", category=lazy_gettext("Money"))]
