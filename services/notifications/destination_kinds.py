"""The kinds of destination: the fields of their config, the format of a message, and the sign of success.

Formats by the vendors' documentation:
WeCom: https://developer.work.weixin.qq.com/document/path/91770 (text of at most 2,048 bytes)
DingTalk: https://open.dingtalk.com/document/robots/custom-robot-access, and .../customize-robot-security-settings for
the signature
Feishu: https://open.feishu.cn/document/client-docs/bot-v3/add-custom-bot (bodies of at most 20 KB)
Telegram: https://core.telegram.org/bots/api#sendmessage (at most 4,096 characters)
webhook: https://www.standardwebhooks.com, as the callbacks to merchants
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar
from urllib.parse import urlencode

from marshmallow import Schema, ValidationError, fields, validate

from gateways.config import is_private, texts
from net.urls import http_parts
from runtime import clock
from services.callbacks.delivery import headers_of
from services.errors import N_
from services.notifications.messages import Message
from services.security.signing import WEBHOOK_PREFIX, sign_webhook

Config = Mapping[str, Any]
LARGEST = 200  # characters of a name or an address
RECIPIENTS = 20
_MAILBOX = re.compile(r"[^\s@,;<>\"]+@[^\s@,;<>\"]+\.[^\s@,;<>\".]+")


def _mailbox(text: str) -> None:
    if not _MAILBOX.fullmatch(text):
        raise ValidationError(N_("Must be an email address, such as ops@example.com."))


def _mailboxes(text: str) -> None:
    found = addresses(text)
    if not 0 < len(found) <= RECIPIENTS:
        raise ValidationError(N_("Enter 1 to 20 email addresses, separated by commas."))
    for each in found:
        _mailbox(each)


def addresses(text: str) -> list[str]:
    """Return the email addresses in a text, which are separated by commas."""
    return [each.strip() for each in text.split(",") if each.strip()]


def _port(text: str) -> None:
    if not (text.isascii() and text.isdigit() and 0 < int(text[:6]) < 65536):
        raise ValidationError(N_("Must be a number from 1 to 65535."))


def _url(text: str) -> None:
    if http_parts(text) is None or not text.isprintable() or " " in text:
        raise ValidationError(N_("Must be an address that begins with https://."))
    if not is_private(text):
        raise ValidationError(N_("Must begin with https://."))


def _webhook_secret(text: str) -> None:
    try:
        size = len(base64.b64decode(text.removeprefix(WEBHOOK_PREFIX), validate=True))
    except binascii.Error:
        size = 0
    if not text.startswith(WEBHOOK_PREFIX) or not 24 <= size <= 64:
        raise ValidationError(N_("Must be whsec_ and 24 to 64 bytes in base64."))


def _text(label: str, hint: str = "", *, secret: bool = False, check: Any = None, **options: Any) -> Any:
    """Return a config field; required unless it has a default."""
    checks = [validate.Length(1 if "load_default" not in options else 0, 2000 if secret else LARGEST)]
    options.setdefault("required", "load_default" not in options)
    return fields.String(
        validate=[*checks, *([check] if check else [])], metadata=texts(label, hint, secret=secret), **options
    )


class Email(Schema):
    """An SMTP account, and who receives its messages."""

    host = _text(N_("SMTP server"), "smtp.example.com")
    security = _text(
        N_("Encryption"),
        N_("tls: usually port 465. starttls: usually port 587."),
        load_default="tls",
        check=validate.OneOf(["tls", "starttls"]),
    )
    port = _text(N_("Port"), load_default="465", check=_port)
    user = _text(N_("User name"), load_default="")
    password = _text(
        N_("Password"),
        N_("Often an authorization code, not the password of the mailbox."),
        secret=True,
        load_default="",
    )
    sender = _text(N_("Sender"), check=_mailbox)
    recipients = _text(N_("Recipients"), N_("Separated by commas."), check=_mailboxes)


@dataclass(frozen=True)
class Request:
    """A POST request: the body is sent byte for byte."""

    url: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})


def _json(url: str, **content: Any) -> Request:
    return Request(url, json.dumps(content, ensure_ascii=False).encode())


def _signature(key: str, text: str) -> str:
    return base64.b64encode(hmac.digest(key.encode(), text.encode(), "sha256")).decode()


ROBOT = N_("The robot's security settings refuse the message. Check its keyword, signature secret and IP addresses.")
ADDRESS = N_("The webhook URL is not valid. Copy it again from the robot's settings.")
FREQUENT = N_("Too many messages. The next attempt follows later.")


class HttpKind(Schema):
    """A kind of destination that receives HTTP requests.

    `done` is the field of the JSON response and its value after success, none if the status is enough. `code` and `why`
    are the fields of a refusal; `reasons` are the causes of known codes, in English for translation.
    """

    done: ClassVar[tuple[str, Any] | None] = None
    code: ClassVar[str] = ""
    why: ClassVar[str] = ""
    reasons: ClassVar[Mapping[int, str]] = {}

    @staticmethod
    def request(config: Config, message: Message) -> Request:
        """Return the request that sends a message."""
        raise NotImplementedError


def _robot_url(host: str) -> Any:
    return _text(N_("Webhook URL"), host, secret=True, check=_url)


class WeCom(HttpKind):
    """A robot of a WeCom group."""

    url = _robot_url("https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=...")

    done, code, why = ("errcode", 0), "errcode", "errmsg"
    reasons: ClassVar = {93000: ADDRESS, 45009: FREQUENT}

    @staticmethod
    def request(config: Config, message: Message) -> Request:
        """Return a text."""
        return _json(config["url"], msgtype="text", text={"content": message.text(2048)})


class DingTalk(HttpKind):
    """A robot of a DingTalk group; with `secret` its messages are signed."""

    url = _robot_url("https://oapi.dingtalk.com/robot/send?access_token=...")
    secret = _text(
        N_("Signature secret"),
        N_("Begins with SEC. Empty if the robot has no signature check."),
        secret=True,
        load_default="",
    )

    done, code, why = ("errcode", 0), "errcode", "errmsg"
    reasons: ClassVar = {310000: ROBOT, 300001: ADDRESS, 300005: ADDRESS, 660026: FREQUENT, 410100: FREQUENT}

    @staticmethod
    def request(config: Config, message: Message) -> Request:
        """Return a text. The signature's key is the secret, and its text the time in milliseconds and the secret."""
        url, secret = config["url"], config["secret"]
        if secret:
            at = str(message.at * 1000)
            url += "&" if "?" in url else "?"
            url += urlencode({"timestamp": at, "sign": _signature(secret, f"{at}\n{secret}")})
        return _json(url, msgtype="text", text={"content": message.text(15_000)})


class Feishu(HttpKind):
    """A robot of a Feishu group; with `secret` its messages are signed."""

    url = _robot_url("https://open.feishu.cn/open-apis/bot/v2/hook/...")
    secret = _text(
        N_("Signature secret"), N_("Empty if the robot has no signature check."), secret=True, load_default=""
    )

    done, code, why = ("code", 0), "code", "msg"
    reasons: ClassVar = {19001: ADDRESS, 19021: ROBOT, 19022: ROBOT, 19024: ROBOT, 11232: FREQUENT, 9499: FREQUENT}

    @staticmethod
    def request(config: Config, message: Message) -> Request:
        """Return a text. The signature's key is the time in seconds and the secret, and its text is empty."""
        secret, signed = config["secret"], {}
        if secret:
            signed = {"timestamp": str(message.at), "sign": _signature(f"{message.at}\n{secret}", "")}
        return _json(config["url"], **signed, msg_type="text", content={"text": message.text(15_000)})


class Telegram(HttpKind):
    """A bot, and the chat that it writes to."""

    token = _text(N_("Bot token"), N_("From @BotFather."), secret=True, check=validate.Regexp(r"[A-Za-z0-9:_-]+$"))
    chat_id = _text(N_("Chat id"), N_("A number, or @name of a channel. Add the bot to the chat first."))
    api_url = _text(
        N_("API address"), N_("Change it only if you use a relay."), load_default="https://api.telegram.org", check=_url
    )

    done, code, why = ("ok", True), "error_code", "description"
    reasons: ClassVar = {
        400: N_("Telegram does not find the chat. Check the chat id, and add the bot to the chat."),
        401: N_("Telegram refused the bot token. Copy it again from @BotFather."),
        403: N_("The bot may not write to the chat. Add it to the chat, or start a chat with it."),
        404: N_("Telegram refused the bot token. Copy it again from @BotFather."),
        429: FREQUENT,
    }

    @staticmethod
    def request(config: Config, message: Message) -> Request:
        """Return a text, whose link has no preview."""
        url = f"{config['api_url'].rstrip('/')}/bot{config['token']}/sendMessage"
        options = {"is_disabled": True}
        return _json(url, chat_id=config["chat_id"], text=message.text(4000), link_preview_options=options)


class Webhook(HttpKind):
    """An endpoint of your own, which verifies Standard Webhooks signatures."""

    url = _text(N_("URL"), secret=True, check=_url)
    secret = _text(
        N_("Signature secret"), N_("whsec_ and 24 to 64 bytes in base64."), secret=True, check=_webhook_secret
    )

    @staticmethod
    def request(config: Config, message: Message) -> Request:
        """Return the findings as JSON, signed like a callback to a merchant."""
        timestamp = clock.rfc3339(message.at)
        content = {"type": f"notification.{message.event}", "timestamp": timestamp, "data": message.data}
        body = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        signature = sign_webhook([config["secret"]], message.id, message.at, body)
        return Request(config["url"], body.encode(), headers_of(message.id, str(message.at), signature))


HTTP: dict[str, type[HttpKind]] = {
    "wecom": WeCom,
    "dingtalk": DingTalk,
    "feishu": Feishu,
    "telegram": Telegram,
    "webhook": Webhook,
}
SCHEMAS: dict[str, type[Schema]] = {"email": Email, **HTTP}
