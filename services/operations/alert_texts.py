"""The sentence for each kind of finding, for the overview and for notifications."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from models.tables.channel import Channel
from models.tables.order import BUY
from runtime import clock
from schemas.views import PAY_METHOD_TEXTS
from services.errors import N_
from services.operations.alerts import Finding
from services.platform.language import Language

Facts = dict[str, Any]


def _channel(number: int) -> str:
    return str(Channel.select(Channel.name).where(Channel.id == number).scalar() or number)


def _storage(facts: Facts, said: Facts, words: Language) -> str:
    text: str = facts["fault"].text
    return words.gettext(text)


def _ledger_off(facts: Facts, said: Facts, words: Language) -> str:
    checks = "; ".join(words.gettext(name) for name in facts["checks"])
    return words.gettext("Ledger integrity check failed. Failed checks: %(checks)s.", checks=checks)


def _ledger_overdue(facts: Facts, said: Facts, words: Language) -> str:
    if facts["at"] is None:
        return words.gettext("The ledger has never been checked.")
    return words.gettext("The ledger has not been checked for %(time)s.", time=words.ago(facts["at"]))


def _exceptions(facts: Facts, said: Facts, words: Language) -> str:
    text = words.gettext("Open exceptions: %(count)s (oldest: %(time)s).", **said)
    if not facts["silent"]:
        return text
    silent = words.gettext("%(count)s of them may resolve when the channel responds.", count=f"{facts['silent']:,}")
    return words.sentences(text, silent)


def _silent(facts: Facts, said: Facts, words: Language) -> str:
    return words.ngettext(
        "%(name)s has not responded about %(count)s order for %(time)s.",
        "%(name)s has not responded about %(count)s orders for %(time)s.",
        name=_channel(facts["channel"]),
        **said,
    )


def _failing(facts: Facts, said: Facts, words: Language) -> str:
    rates = {name: f"{facts[name]:.0%}" for name in ("recent", "usual")}
    about = {"name": _channel(facts["channel"]), "count": said["count"]} | rates
    if facts["order_type"] == BUY:
        text = N_("%(name)s: of the last %(count)s deposits %(recent)s succeeded, usually %(usual)s.")
    else:
        text = N_("%(name)s: of the last %(count)s withdrawals %(recent)s succeeded, usually %(usual)s.")
    return words.gettext(text, **about)


def _channel_off(facts: Facts, said: Facts, words: Language) -> str:
    comma = words.gettext(", ")
    about = {
        "name": _channel(facts["channel"]),
        "methods": comma.join(words.gettext(PAY_METHOD_TEXTS[method]) for method in facts["methods"]),
        "time": words.ago(facts["since"]),
    }
    if clock.now() - facts["since"] < 60:
        texts = [words.gettext("%(name)s: new payments fail (%(methods)s).", **about)]
    else:
        texts = [words.gettext("%(name)s: new payments have failed for %(time)s (%(methods)s).", **about)]
    if facts["count"]:
        failures = words.gettext("Failed: %(failures)s of the last %(count)s.", failures=facts["failures"], **said)
    else:
        failures = words.gettext("No order has tried the channel in the last 15 minutes.")
    texts.append(failures)
    if reason := facts["reason"].rstrip("."):
        texts.append(words.gettext("Last reason: %(reason)s.", reason=words.known(reason)))
    if facts["goes_on"]:
        texts.append(
            words.gettext("Orders go through other channels of %(groups)s.", groups=comma.join(facts["goes_on"]))
        )
    if facts["stops"]:
        texts.append(words.gettext("Orders through %(groups)s stop.", groups=comma.join(facts["stops"])))
    if facts["direct"]:
        texts.append(words.gettext("Orders that name this channel still try it."))
    return words.sentences(*texts)


def _backup(facts: Facts, said: Facts, words: Language) -> str:
    failed = words.gettext("The last scheduled backup failed. See the log.") if facts["failed"] else ""
    if facts["at"] is None:
        return words.sentences(failed, words.gettext("There is no scheduled backup."))
    age = words.gettext("The newest scheduled backup is %(time)s old.", time=words.ago(facts["at"]))
    return words.sentences(failed, age)


def _unusable(facts: Facts, said: Facts, words: Language) -> str:
    methods = words.gettext(", ").join(words.gettext(PAY_METHOD_TEXTS[method]) for method in facts["methods"])
    return words.gettext(
        "%(name)s has no QR code for %(methods)s. Payers cannot pay that way.",
        name=_channel(facts["channel"]),
        methods=methods,
    )


def _bills(facts: Facts, said: Facts, words: Language) -> str:
    text = words.ngettext(
        "%(name)s: the bill of %(day)s is missing.",
        "%(name)s: %(count)s bills are missing, the oldest of %(day)s.",
        name=_channel(facts["channel"]),
        day=facts["day"],
        **said,
    )
    return words.sentences(text, words.known(facts["problem"]))


def _counted(text: str) -> Callable[[Facts, Facts, Language], str]:
    """Return a function that fills in a sentence with `count` and `time`."""
    return lambda facts, said, words: words.gettext(text, **said)


# By kind of finding. `said` has the values of most sentences: `num`, `count` (formatted), `time` since the oldest.
SENTENCES: dict[str, Callable[[Facts, Facts, Language], str]] = {
    "storage": _storage,
    "restored": lambda facts, said, words: words.gettext(
        "Restored from a backup %(time)s ago. Payouts and the expiry of manual deposits are paused. "
        "Reconcile with your channels and merchants, then run `tillbook db resume`.",
        time=words.ago(facts["at"]),
    ),
    "unknown_notices": lambda facts, said, words: words.ngettext(
        "%(count)s verified notice refers to an unknown order. Run `tillbook order unknown` to list it.",
        "%(count)s verified notices refer to unknown orders. Run `tillbook order unknown` to list them.",
        **said,
    ),
    "stuck": lambda facts, said, words: words.gettext(
        "Open orders without a next step: %(count)s (%(orders)s). Check them, and report this error.",
        orders=words.gettext(", ").join(facts["orders"]),
        **said,
    ),
    "stuck_refunds": lambda facts, said, words: words.gettext(
        "Open refunds without a next step: %(count)s (%(refunds)s). Check them, and report this error.",
        refunds=words.gettext(", ").join(facts["refunds"]),
        **said,
    ),
    "ledger_off": _ledger_off,
    "ledger_overdue": _ledger_overdue,
    "ledger_failed": lambda facts, said, words: words.gettext(
        "The last ledger check did not finish: %(why)s.", why=facts["why"].rstrip(".")
    ),
    "exceptions": _exceptions,
    "differences": _counted(
        N_("Differences between statements and orders: %(count)s (oldest: %(time)s)."),
    ),
    "payouts": _counted(N_("Withdrawals to review or send: %(count)s (oldest: %(time)s).")),
    "refunds": _counted(N_("Refunds to review or send: %(count)s (oldest: %(time)s).")),
    "refund_late": _counted(
        N_("Refunds without a result: %(count)s (oldest: %(time)s). Check them at the channel."),
    ),
    "requests": _counted(N_("Payouts waiting for a second operator: %(count)s (oldest: %(time)s).")),
    "claims": _counted(
        N_("Customers who say they have paid: %(count)s (oldest: %(time)s). Check your account."),
    ),
    "dead": _counted(N_("Callbacks that failed after all retries, last 7 days: %(count)s.")),
    "retried": _counted(N_("Callbacks being retried: %(count)s.")),
    "silent": _silent,
    "channel_off": _channel_off,
    "failing": _failing,
    "backup": _backup,
    "low_balance": lambda facts, said, words: words.gettext(
        "%(name)s: the balance at the channel is below its limit.", name=_channel(facts["channel"])
    ),
    "unusable": _unusable,
    "bills": _bills,
    "unreachable": lambda facts, said, words: words.gettext(
        "Notifications to %(name)s fail. Failed attempts: %(count)s.", name=facts["name"], count=said["count"]
    ),
}


def sentence(finding: Finding, words: Language) -> str:
    """Return the sentence for a finding. It has counts, ages and names of merchants and channels, no personal data."""
    facts, count = finding.facts, finding.facts.get("count", 0)
    said = {"num": count, "count": f"{count:,}", "time": words.ago(facts.get("oldest"))}
    return SENTENCES[finding.kind](facts, said, words)


def page(finding: Finding) -> str:
    """Return the path in the console of the page where a finding is handled; "" for the overview."""
    return f"channel/{finding.facts['channel']}#health" if finding.kind == "channel_off" else ""
