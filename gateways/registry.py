"""The registry of drivers: a new driver is a file in this package and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateways.alipay import AlipayDriver
from gateways.base import Driver
from gateways.epay import EpayDriver
from gateways.manual import ManualDriver
from gateways.sandbox.driver import SandboxDriver
from gateways.wechatpay import WechatpayDriver

DRIVERS: dict[str, type[Driver]] = {
    driver.name: driver for driver in (SandboxDriver, ManualDriver, EpayDriver, WechatpayDriver, AlipayDriver)
}


def build(name: str, config: Mapping[str, Any]) -> Driver:
    """Return the driver of that name, with its config.

    Raises:
        KeyError: no such driver. marshmallow.ValidationError: invalid config; its messages name the fields.
    """
    driver = DRIVERS[name]
    return driver.of(driver.config_schema().load(dict(config)))
