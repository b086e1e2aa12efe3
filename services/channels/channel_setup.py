"""Channel setup: columns, drivers' configs, and a check of both."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from marshmallow import ValidationError
from peewee import IntegrityError

from gateways import registry
from gateways.base import METHODS, ChannelUnknown, Finding, Payment
from models.db.base import LARGEST_ID, database
from models.db.errors import first_line
from models.db.writer import after_commit, transaction
from models.tables.channel import CATEGORIES, LARGEST_AMOUNT, Channel, ChannelMember
from models.tables.ledger import CLEARING
from models.tables.order import Attempt, Order
from models.tables.refund import OPEN, Refund
from runtime import clock
from runtime.state import current
from services.channels import groups, health, pictures
from services.channels.calls import call_driver, driver_of, payment_of
from services.channels.order_numbers import new_order_no
from services.errors import N_, OperatorError
from services.ledger import accounts
from services.merchants import cache, edit_conflicts, links
from services.security import vault

DEMO_ONLY = N_("The sandbox is available in demo mode only. Choose another provider.")
BY_HAND = N_("Manual channel: no automatic status check.")
UNDER_WAY = N_("Orders are still in progress at the current account. For a different account, add another channel.")
MEMBER = N_(
    "All channels of a group have the settlement delay of the group. Remove the channel from group %(group)s first."
)
WITH_MEMBERS = N_("All channels of a group have the settlement delay of the group. Remove its channels first.")
REFUNDING = N_("Refunds are still in progress at the current account. For a different account, add another channel.")


class CheckFailed(OperatorError):
    """A channel check without a usable response; `findings` has the results in plain words."""

    def __init__(self, text: str, findings: list[Finding]):
        super().__init__(text)
        self.findings = findings


def check(channel: Channel) -> list[Finding]:
    """Check whether a channel can be used: whether its upstream accepts our keys, and more if the driver can check it.

    Raises:
        CheckFailed: no usable response; the text gives the reason.
    """
    driver = driver_of(channel)
    if driver.by_hand:
        unusable = pictures.unusable_methods(channel).items()
        return [Finding("keys", None, BY_HAND), *(Finding(method, False, why) for method, why in unusable)]
    # Deposits with unused numbers: the channel's minimum amount, once for each payment method.
    facts = {"amount": channel.min_amount, "expires_at": clock.now() + current().settings.buy_expiry}
    payments = [
        payment_of(Order(order_no=new_order_no(), payment_method=method, **facts))
        for method in channel.pay_method.split(",")
    ]

    def check_all(_: Payment) -> list[Finding]:
        return driver.check(payments)

    try:
        found: list[Finding] = call_driver(check_all, payments[0])
    except ChannelUnknown as silence:
        of_clock = driver.clock() if silence.was_reached else []
        raise CheckFailed(str(silence), silence.findings() + of_clock) from silence
    if all(each.good is not False for each in found):
        health.try_again(channel)
    return found


def every() -> list[Channel]:
    """Return all channels, the oldest first."""
    return list(Channel.select().order_by(Channel.id))


def with_accounts() -> list[Channel]:
    """Return the channels that are not groups, the oldest first: only they receive money."""
    return [row for row in every() if not row.is_group]


def groups_of(channel: Channel) -> list[Channel]:
    """Return the groups that have this channel as a member, by id."""
    own = Channel.select().join(ChannelMember, on=ChannelMember.group == Channel.id)
    return list(own.where(ChannelMember.channel == channel).order_by(Channel.id))


def offer_of(channel: Channel) -> tuple[str, int | None, int | None]:
    """Return the payment methods, joined by commas, and the minimum and maximum amount in fen.

    A group offers those of its members; without members, no method, and None.
    """
    if not channel.is_group:
        return channel.pay_method, channel.min_amount, channel.max_amount
    accepted = groups.accepted(channel)
    amounts = [each for ranges in accepted.values() for each in ranges]
    low, high = min((low for low, _ in amounts), default=None), max((high for _, high in amounts), default=None)
    return ",".join(accepted), low, high


def find_channel(channel_id: int) -> Channel:
    """Return the channel with this id. Raises OperatorError."""
    channel = Channel.get_or_none(Channel.id == channel_id) if channel_id <= LARGEST_ID else None
    if channel is None:
        raise OperatorError(N_("no channel %(channel_id)s"), channel_id=str(channel_id))
    return channel


def find_with_account(channel_id: int) -> Channel:
    """Return the channel with this id. Raises OperatorError, also for a group."""
    channel = find_channel(channel_id)
    if channel.is_group:
        raise OperatorError(N_("A channel group has no account. Choose one of its channels."), "channel")
    return channel


def find_usable(channel_id: int) -> Channel:
    """Return the channel with this id. Raises OperatorError: no such channel, a group, or a sandbox in production."""
    channel = find_with_account(channel_id)
    if channel.driver not in registry.usable():
        raise OperatorError(DEMO_ONLY, "channel")
    return channel


def config_of(channel: Channel) -> dict[str, Any]:
    """Return a channel's present config, decrypted."""
    return json.loads(vault.decrypt(channel.config))


def wrong_config(driver: str, config: dict[str, Any]) -> dict[str, list[str]]:
    """Return the errors of a config by its driver's schema: `{"config.FIELD": [messages]}`."""
    return {
        f"config.{name}": [str(text) for text in texts]
        for name, texts in registry.DRIVERS[driver].config_schema().validate(config).items()
    }


def _encrypted_config(driver: str, config: dict[str, Any]) -> str:
    """Validate a driver's config by its schema; return it encrypted. Raises OperatorError, naming the fields."""
    try:
        loaded = registry.DRIVERS[driver].config_schema().load(config)
    except ValidationError:
        wrong = wrong_config(driver, config)
        errors = [f"{name.removeprefix('config.')}: {' '.join(texts).rstrip('.')}" for name, texts in wrong.items()]
        raise OperatorError(f"config: {'; '.join(errors)}", wrong) from None
    return vault.encrypt(json.dumps(loaded, ensure_ascii=False))


def _pay_method(text: str | None, driver: str) -> str:
    possible = registry.DRIVERS[driver].methods
    wanted = set(possible) if text is None else {part.strip() for part in text.split(",")}
    if not wanted <= set(possible):
        raise OperatorError(N_("payment methods must be some of %(names)s"), "pay_method", names=", ".join(possible))
    return ",".join(method for method in METHODS if method in wanted)


def _cost_rates(rates: dict[str, int], driver: str, present: str = "{}") -> str:
    """Return the rates merged into the present ones, as they are stored. Raises OperatorError."""
    possible = registry.DRIVERS[driver].methods
    if not set(rates) <= set(possible):
        raise OperatorError(N_("payment methods must be some of %(names)s"), "cost_rates", names=", ".join(possible))
    if not all(0 <= points <= 10_000 for points in rates.values()):
        raise OperatorError("a value is out of range: cost_rates")
    merged = json.loads(present) | rates
    return json.dumps({method: merged[method] for method in METHODS if merged.get(method)})


@transaction
def add_channel(
    category: str,
    driver: str,
    name: str,
    *,
    config: dict[str, Any],
    pay_method: str | None = None,
    merchants: Iterable[int] = (),
    new_name: bool = False,
    cost_rates: dict[str, int] | None = None,
    **facts: Any,
) -> Channel:
    """Add a channel with its clearing account, or a group, which has none.

    Args:
        config: the driver's config; validated by its schema.
        merchants: the ids of the merchants that may use it.
        new_name: refuse a name that another channel has, so that a form that was sent twice adds one channel.
        cost_rates: costs of deposits by payment method, in basis points.
        pay_method: some of wxpay, alipay, bank, joined by commas; None for all that the driver supports.
        facts: columns of Channel; amounts in fen, rates in basis points, `hours` such as 09:00-21:00.

    Raises:
        OperatorError: invalid value; it names the field.
    """
    if category not in CATEGORIES:
        raise OperatorError(N_("category must be one of %(names)s"), names=", ".join(CATEGORIES))
    if driver not in registry.DRIVERS:
        raise OperatorError(f"unknown driver {driver!r}: choose one of {', '.join(registry.usable())}")
    if driver not in registry.usable():
        raise OperatorError(DEMO_ONLY)
    _check_range(facts.get("min_amount", 1), facts.get("max_amount", LARGEST_AMOUNT))
    facts["hours"] = groups.checked_hours(facts.get("hours", ""))
    if new_name:
        database.advisory_lock("names of channels")
        if Channel.select().where(Channel.name == name).exists():
            raise OperatorError(N_("A channel with this name already exists. Choose another name."), "name")
    now = clock.now()
    channel = _checked(
        lambda: Channel.create(
            category=category,
            driver=driver,
            name=name,
            pay_method=_pay_method(pay_method, driver),
            cost_rates=_cost_rates(cost_rates or {}, driver),
            config=_encrypted_config(driver, config),
            **{"createtime": now, "updatetime": now} | facts,
        )
    )
    if not channel.is_group:
        accounts.open_accounts((CLEARING, channel.id))
    links.set_merchants(channel, merchants)
    return channel


@transaction
def set_channel(
    channel: Channel,
    config: dict[str, Any] | None = None,
    *,
    same_account: bool = False,
    merchants: Iterable[int] | None = None,
    mark: str | None = None,
    **facts: Any,
) -> None:
    """Change columns of a channel; `config` and `cost_rates` are merged into the present ones.

    Args:
        same_account: the fields that identify the account may change, because the new values name the same account.
        merchants: the ids of the merchants that may use it; None for no change.
        mark: `edit_conflicts.version_of` the channel when it was shown; a later change is not overwritten.

    Raises:
        OperatorError: invalid value, open orders in the present account, another settlement delay than that of a group
            of the channel, or someone changed the channel meanwhile.
    """
    channel = edit_conflicts.check_version(channel, mark)
    if facts.get("enabled") and channel.driver not in registry.usable():
        raise OperatorError(DEMO_ONLY, "enabled")
    if config:
        present = config_of(channel)
        if not same_account:
            _check_account(channel, present, config)
        facts["config"] = _encrypted_config(channel.driver, present | config)
    if "pay_method" in facts:
        facts["pay_method"] = _pay_method(facts["pay_method"], channel.driver)
    if "cost_rates" in facts:
        facts["cost_rates"] = _cost_rates(facts["cost_rates"], channel.driver, channel.cost_rates)
    if "hours" in facts:
        facts["hours"] = groups.checked_hours(facts["hours"])
    if facts.get("settlement_days", channel.settlement_days) != channel.settlement_days:
        _check_groups(channel)
    _check_range(facts.get("min_amount", channel.min_amount), facts.get("max_amount", channel.max_amount))
    facts["updatetime"] = clock.now()
    after_commit(cache.forget)
    _checked(lambda: Channel.update(facts).where(Channel.id == channel.id).execute())
    if config:
        health.try_again(channel)
    if merchants is not None:
        links.set_merchants(channel, merchants)


def _check_account(channel: Channel, present: dict[str, Any], config: dict[str, Any]) -> None:
    """Refuse to change the account while the present one has open orders or refunds.

    The other account would not know them, so payouts would be sent twice, and deposits and refunds never found.
    """
    names = registry.DRIVERS[channel.driver].account_fields
    changed = [name for name in names if name in config and str(config[name]) != str(present.get(name))]
    if not changed:
        return
    # `lock_account` makes new orders wait for this row.
    database.for_update(Channel.select().where(Channel.id == channel.id), alone=True).get()
    # A group may have passed an order on that is still watched here.
    tried = Order.id.in_(Attempt.select(Attempt.order).where(Attempt.channel == channel))
    its = Order.select().where(Order.due_at.is_null(False))
    if its.where(Order.channel == channel).exists() or its.where(Order.group.is_null(False), tried).exists():
        raise OperatorError(
            f"orders are in progress at the account of the present {changed[0]}. Add another channel, or add "
            "--same-account if this is a new name of the same account",
            {"same_account": [UNDER_WAY]},
        )
    going = Refund.status.in_(OPEN) | Refund.due_at.is_null(False)
    if Refund.select().where(Refund.channel == channel, going).exists():
        raise OperatorError(
            f"refunds are in progress at the account of the present {changed[0]}. Add another channel, or add "
            "--same-account if this is a new name of the same account",
            {"same_account": [REFUNDING]},
        )


def _check_groups(channel: Channel) -> None:
    """Refuse to change the settlement delay of a member of a group, or of a group with members."""
    if channel.is_group and ChannelMember.select().where(ChannelMember.group == channel).exists():
        raise OperatorError(WITH_MEMBERS, "settlement_days")
    if in_groups := groups_of(channel):
        raise OperatorError(MEMBER, "settlement_days", group=str(in_groups[0].id))


def _check_range(least: int, largest: int) -> None:
    if least > largest:
        raise OperatorError(N_("The minimum amount is above the maximum."), "min_amount")


def _checked(write: Any) -> Any:
    try:
        return write()
    except IntegrityError as error:
        raise OperatorError(f"a value is out of range: {first_line(error)}") from None
