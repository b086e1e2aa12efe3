"""`/sandbox/return` is the page of the demo shop to which payers return."""

from __future__ import annotations

from typing import Any

from flask import render_template, request
from flask_babel import gettext

from blueprints.api.envelope import ok
from blueprints.sandbox.access import sandbox, wants_json
from services.sandbox import returned


@sandbox.get("/return")
def show_return() -> Any:
    """Show the fields with which a payer returned and whether they are genuine, as a page or as JSON."""
    fields = {name: request.args[name] for name in returned.FIELDS if name in request.args}
    fault = returned.fault_of(fields)
    if wants_json():
        return ok({"verified": not fault, "why": fault, **fields})
    return render_template(
        "returned.html",
        fields=fields,
        why=gettext(fault) if fault else "",
        signed=returned.signed_content(fields) if fault != returned.MISSING else "",
    )
