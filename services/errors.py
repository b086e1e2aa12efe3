"""Every refusal that a caller can meet: its code, its text and what it carries."""

from __future__ import annotations

from typing import Any

N_ = str  # marks a text for translation where it is shown

# The first three digits are the HTTP status. The texts are message ids for translation.
ERRORS = {
    40000: N_("the request is malformed"),
    40101: N_("unknown api_key"),
    40102: N_("bad signature"),
    40103: N_("timestamp outside the window"),
    40104: N_("nonce missing, malformed or used before"),
    40300: N_("this address is not allowed"),
    40401: N_("order not found"),
    40402: N_("region not found"),
    40403: N_("channel not found"),
    40404: N_("no such address"),
    40500: N_("method not allowed"),
    40800: N_("the request body took too long"),
    40901: N_("the balance does not cover this order"),
    40902: N_("a request with this Idempotency-Key is still running"),
    40903: N_("no receiving account on file"),
    41300: N_("the request body is too large"),
    41500: N_("the content type must be application/json"),
    42200: N_("invalid fields"),
    42201: N_("this Idempotency-Key was used with another payload"),
    42900: N_("too many requests"),
    50000: N_("internal error"),
    50201: N_("the channel refused the order or failed"),
    50300: N_("the service is unavailable for now"),
}

# Seconds after which trying again makes sense, where nothing more is known.
RETRY_AFTER = {50000: 5, 50201: 5, 50300: 1}


class Refused(Exception):
    """A refusal with its documented code.

    `data` is null or `{field: [messages]}`; `detail` says more after the code's text;
    `retry_after` is in seconds and becomes the header; `replayed` says that an earlier request
    with the same Idempotency-Key met it first.
    """

    def __init__(
        self, code: int, data: Any = None, *, detail: str = "", retry_after: int | None = None, replayed: bool = False
    ):
        super().__init__(f"{code} {ERRORS[code]}" + (f": {detail}" if detail else ""))
        self.code, self.data, self.detail = code, data, detail
        self.retry_after = RETRY_AFTER.get(code) if retry_after is None else retry_after
        self.replayed = replayed


class NotPossible(Exception):
    """An operator's act that can't be carried out; the text says why.

    `wrong` is `{field: [messages]}` where single fields are to blame, so that a form can say it there;
    `config.NAME` is a field of a driver's config. `values` are what stands in the text, and in the messages, as
    `%(name)s`: apart, so that both can be said in another language.
    """

    def __init__(self, text: str, wrong: dict[str, list[str]] | None = None, /, **values: str):
        super().__init__(text % values if values else text)
        self.text, self.wrong, self.values = text, wrong or {}, values
