"""The page of one callback: what is told, to where, every attempt, and telling it again."""

from __future__ import annotations

import json
from typing import Any

from flask import abort, redirect, request, url_for
from flask_admin import expose

from blueprints.console.layout import Page
from blueprints.console.pages.order import WORDS, act_on, found
from services.console import available_actions, timeline
from services.errors import OperatorError
from services.security import masking


def _found(webhook_id: str) -> timeline.CallbackTimeline:
    try:
        return timeline.callback_timeline(webhook_id)
    except OperatorError:
        abort(404)


def _pretty(body: str) -> str:
    return json.dumps(json.loads(body), ensure_ascii=False, indent=2)


class CallbackPage(Page):
    """One callback."""

    @expose("/")
    def index(self) -> Any:
        """There is no page about no callback."""
        return redirect(url_for("callbacks.index_view"))

    @expose("/<webhook_id>")
    def show(self, webhook_id: str) -> str:
        """The whole story."""
        told = _found(webhook_id)
        return self.render(
            "console/callback.html",
            **WORDS,
            **{"story": told, "callback": told.callback, "order": found(told.callback.order.order_no)},
            **{"actions": available_actions.of_callback(told.callback)},
            **{"pretty": _pretty(told.callback.body), "error": masking.error},
        )

    @expose("/<webhook_id>/act", methods=["POST"])
    def act(self, webhook_id: str) -> Any:
        """Deliver it again."""
        callback = _found(webhook_id).callback
        # The order's other actions are refused here: its own page may ask for a confirmation first.
        if request.form.get("action") != f"redeliver-{callback.id}":
            abort(404)
        act_on(found(callback.order.order_no))
        return redirect(url_for(".show", webhook_id=webhook_id), 303)


def views() -> list[Any]:
    """The page, which stands in no menu."""
    return [CallbackPage(endpoint="callback", url="/callback")]
