"""The registry of drivers: a new driver is a file in this package and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateways.alipay import AlipayDriver
from gateways.base import Driver
from gateways.epay import EpayDriver
from gateways.group import GroupDriver
from gateways.manual import ManualDriver
from gateways.sandbox.driver import SandboxDriver
from gateways.wechatpay import WechatpayDriver
from runtime.state import current

DRIVERS: dict[str, type[Driver]] = {
    driver.name: driver
    for driver in (SandboxDriver, ManualDriver, EpayDriver, WechatpayDriver, AlipayDriver, GroupDriver)
}


class _Closed(Driver):
    """Replaces the sandbox driver outside demo mode: it accepts no deposits, payouts, notices or status checks."""

    name = SandboxDriver.name


def usable() -> list[str]:
    """Return the names of the drivers that channels may have; the sandbox in demo mode only."""
    return [name for name in DRIVERS if name != SandboxDriver.name or current().settings.demo]


def build(name: str, config: Mapping[str, Any]) -> Driver:
    """Return the driver of that name, with its config.

    Raises:
        KeyError: no such driver. marshmallow.ValidationError: invalid config; its messages name the fields.
    """
    if name == SandboxDriver.name and not current().settings.demo:
        return _Closed({})
    driver = DRIVERS[name]
    return driver.of(driver.config_schema().load(dict(config)))
