"""What a check of an epay channel finds in the platform's answers about the merchant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateways.base import N_, ChannelUnknown, Finding
from gateways.epay_answers import refusal
from gateways.upstream import said


def not_known(about: str, silence: ChannelUnknown) -> Finding:
    """What could not be asked."""
    return Finding(about, None, N_("not known: %(why)s"), {"why": str(silence)})


def may_collect(answer: Mapping[str, Any], success: str, *states: Any) -> Finding:
    """Whether the merchant may take payments; each state is 1 if so, 2 while it is under review, 0 if not."""
    if str(answer["code"]) != success:
        return Finding("collect", None, N_("not known: %(why)s"), {"why": refusal(answer)})
    if None in states:
        return Finding("collect", None, N_("not known: %(why)s"), {"why": "the platform does not say"})
    found = {str(state) for state in states}
    if found == {"1"}:
        balance = said(answer.get("money", ""))
        return Finding("collect", True, N_("open; balance at the platform: %(balance)s"), {"balance": balance})
    if "2" in found:
        return Finding("collect", False, N_("the platform is still reviewing the merchant"))
    return Finding("collect", False, N_("the platform has closed this for the merchant"))


def may_pay_out(answer: Mapping[str, Any]) -> Finding:
    """Whether the merchant may pay out. That it may not is no problem of a channel that takes deposits only."""
    if str(answer["code"]) != "0":
        return Finding("pay_out", None, N_("not open: %(why)s"), {"why": refusal(answer)})
    facts = {"available": said(answer.get("available_money", "")), "rate": said(answer.get("transfer_rate", ""))}
    return Finding("pay_out", True, N_("open; available: %(available)s, the platform's fee: %(rate)s%%"), facts)
