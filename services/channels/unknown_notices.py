"""Notices about orders that the database does not have: genuine ones are logged and listed, others counted."""

from __future__ import annotations

import logging
import re
from contextlib import suppress

from gateways.base import BadNotice, Incoming, Report
from models.db.writer import transaction
from models.tables.channel import Channel
from models.tables.unknown_notice import UnknownNotice
from runtime import clock
from runtime.money import hundredths
from runtime.state import Part
from services.channels.calls import driver_of
from services.channels.order_numbers import order_no_of
from services.platform.counted_metrics import counters
from services.platform.rate_limits import Rate

log = logging.getLogger(__name__)

ORDER_NO = re.compile(r"[0-9]{24}")
PER_ADDRESS, TOGETHER = 30, 300  # notices to verify in a minute: each costs a signature check per channel
VERIFIED, REFUSED, LIMITED = "verified", "refused", "limited"
RECENT = 30 * 86_400  # seconds for which a notice needs attention

_rates = Part(lambda: (Rate(PER_ADDRESS, seconds=60), Rate(TOGETHER, seconds=60)))


def take(order_no: str, incoming: Incoming, address: str) -> None:
    """Verify a notice about an unknown order with the keys of the enabled channels; store it if it is genuine.

    The response is always a failure: the channel then repeats the notice, which counts once a newer database is
    restored.

    Args:
        address: the sender's, by `rate_limits.caller`.
    """
    if not ORDER_NO.fullmatch(order_no):
        counters().unknown_notice(REFUSED)
        return
    of_address, of_all = _rates()
    if not (of_address.hit(address) and of_all.hit("")):
        counters().unknown_notice(LIMITED)
        return
    for channel in Channel.select().where(Channel.enabled).order_by(Channel.id):
        with suppress(BadNotice):
            notice = driver_of(channel).read_notice(incoming)
            if order_no_of(notice.order_no) == order_no and notice.report is not None and notice.report.proven:
                _store(channel, order_no, notice.report)
                counters().unknown_notice(VERIFIED)
                return
    counters().unknown_notice(REFUSED)


@transaction
def _store(channel: Channel, order_no: str, report: Report) -> None:
    state, amount, reference = report.state.value, report.amount, report.reference
    if UnknownNotice.keep(
        channel=channel, order_no=order_no, at=clock.now(), state=state, amount=amount, reference=reference
    ):
        log.warning(
            "Verified notice for unknown order %s from channel %d: %s, %s yuan, reference %s (tillbook order unknown)",
            order_no,
            channel.id,
            state,
            hundredths(amount),
            reference,
        )


def listed(limit: int) -> list[UnknownNotice]:
    """Return the newest notices whose order is still unknown."""
    return list(UnknownNotice.still_unknown().limit(limit))


def recent() -> int:
    """Return the number of notices of the last 30 days whose order is still unknown."""
    since = clock.now() - RECENT
    return UnknownNotice.still_unknown().where(UnknownNotice.at >= since).count()
