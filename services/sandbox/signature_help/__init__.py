"""Explains a rejected signature: the string to sign line by line, and the mistake that produces the received one."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from models.tables.merchant import Merchant
from schemas.signature_fields import AUTH, NONCE
from schemas.strict_json import Malformed
from services.errors import N_
from services.sandbox import seeding
from services.sandbox.signature_help import finding
from services.sandbox.signature_help import texts as comparing
from services.sandbox.signature_help.finding import API, Protocol
from services.sandbox.signature_help.mistakes import Mistake
from services.sandbox.signature_help.received import BODY, Leaf, Received, read
from services.sandbox.signature_help.recipe import Keys
from services.sandbox.signature_help.texts import FirstDifference, Row
from services.security import signing, vault
from services.security.replay import WINDOW

NO_KEYS = Keys()


@dataclass(frozen=True)
class Sentence:
    """A sentence with `%(name)s` in it, and the values for that, separate so that the sentence can be translated."""

    text: str
    good: bool = True
    values: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.text % self.values


@dataclass(frozen=True)
class Explanation:
    """The explanation of one request.

    `refused` is the reason why it is refused before its signature is verified; then the rest is empty. `lines` are the
    lines of `text` with their values; `ending` is the step after it. `signature` is the right one, if it may be shown.
    `holds` is None without anything to compare. `mistakes` together produce exactly the received signature or text, and
    `their_text` is then the signed text. `checks` are the results of the service's other checks.
    """

    endpoint: str = ""
    refused: str = ""
    text: str = ""
    ending: Sentence = Sentence(N_("The text ends without a newline."))
    lines: tuple[tuple[str, Leaf | None], ...] = ()
    left_out: tuple[Leaf, ...] = ()
    signature: str = ""
    given: str = ""
    holds: bool | None = None
    verdict: Sentence = Sentence("")
    mistakes: tuple[Mistake, ...] = ()
    their_text: str | None = None
    rows: tuple[Row, ...] = ()
    first: FirstDifference | None = None
    checks: tuple[Sentence, ...] = ()

    @property
    def is_right(self) -> bool:
        """True if no mistake was found in the signature."""
        return not self.refused and self.holds is not False and self.their_text in (None, self.text)


def keys_of(merchant: Merchant) -> Keys:
    """Return a stored merchant's secrets."""
    valid = vault.valid_secrets(merchant, "secret")
    previous = [vault.decrypt(merchant.previous_secret)] if merchant.previous_secret else []
    return Keys(
        merchant.key,
        tuple(valid),
        tuple(vault.valid_secrets(merchant, "callback_secret")),
        tuple(secret for secret in previous if secret not in valid),
    )


def _are_known(keys: Keys) -> bool:
    """Return whether the caller sent the secrets, or they are those of a demo merchant, which are published."""
    return not keys.api_key or set(keys.api) <= {merchant["secret"] for merchant in seeding.MERCHANTS}


def explain(
    path: str,
    body: bytes,
    query: str = "",
    keys: Keys = NO_KEYS,
    *,
    theirs: str | None = None,
    signature: str | None = None,
    now: float | None = None,
) -> Explanation:
    """Explain the signature of one request.

    The right signature is returned only to callers who know the secret, since it would be valid in a request.

    Args:
        path: the path of the address.
        keys: the secrets; without them no signature is verified.
        theirs: the text that the integrator's code signs.
        signature: theirs; None for the one in the request.
        now: the Unix time with which the timestamp is compared.
    """
    try:
        received = read(path, body, query)
    except Malformed as error:
        return Explanation(refused=error.message, verdict=REFUSED)
    given = received.auth("signature") if signature is None else signature
    text = signing.string_to_sign(received.endpoint, received.body, received.query)
    plain = Explanation(
        endpoint=received.endpoint,
        text=text,
        lines=((received.endpoint, None), *lines_of(received)),
        left_out=left_out_of(received),
        signature=signing.sign(keys.api[0], text) if keys.api and _are_known(keys) else "",
        given=given,
        checks=tuple(_checks(received, given, keys, time.time() if now is None else now)),
    )
    return judged(API, plain, received, keys, theirs)


def lines_of(received: Received) -> tuple[tuple[str, Leaf], ...]:
    """Return the lines of the signed values, sorted, each with its value."""
    counted = sorted((leaf for leaf in received.leaves if not leaf.left_out), key=lambda leaf: leaf.path)
    return tuple((f"{leaf.path}={leaf.text}", leaf) for leaf in counted)


def left_out_of(received: Received) -> tuple[Leaf, ...]:
    """Return the values that the signature does not cover."""
    return tuple(leaf for leaf in received.leaves if leaf.left_out)


# --- the mistake

REFUSED = Sentence(N_("The service refuses this request before it checks the signature."), False)
_NOTHING = Sentence(N_("This is the server's string to sign."))
_NO_SIGNATURE = Sentence(N_("The request has no signature."))
_HOLDS = Sentence(N_("The signature is valid."))
_SAME_TEXT = Sentence(N_("Your text equals the server's."))
_SAME_BUT = Sentence(
    N_("Your text equals the server's, but the signature differs: you used another secret or other bytes."), False
)
_FOUND = Sentence(N_("You get this signature if"), False)
_FOUND_TEXT = Sentence(N_("You get this text if"), False)
_TEXT_DIFFERS = Sentence(N_("The texts differ. Each line shows how."), False)
_OF_THIS_TEXT = Sentence(N_("The signature in the request is that of your text."))
_NOT_OF_IT = Sentence(
    N_(
        "The signature in the request is not that of your text: the secret differs too, or it belongs to another "
        "request."
    ),
    False,
)
_UNKNOWN = Sentence(
    N_(
        "No known mistake gives this signature. Compare the text that your code signs with the server's: "
        "the first line that differs shows the mistake. If no line differs, the secret does."
    ),
    False,
)


def judged(protocol: Protocol, plain: Explanation, received: Received, keys: Keys, theirs: str | None) -> Explanation:
    """Return the explanation with its verdict, the mistakes, and the comparison of the two texts."""
    return _compared(protocol, _judged(protocol, plain, received, keys, theirs), received)


def _judged(protocol: Protocol, plain: Explanation, received: Received, keys: Keys, theirs: str | None) -> Explanation:
    able = bool(keys.api and plain.given)
    if able and protocol.recipe().makes(plain.given, plain.text, received, keys):
        return replace(plain, holds=True, verdict=_HOLDS, their_text=_as_signed(theirs, plain.text))
    if theirs is not None:
        told = _by_text(protocol, plain, received, keys if able else Keys(), theirs)
        return replace(told, holds=False if able else None)
    if not able:
        return replace(plain, verdict=_NOTHING if plain.given else _NO_SIGNATURE)
    mistakes, text = finding.by_signature(protocol, received, keys, plain.given)
    return replace(plain, holds=False, verdict=_FOUND if mistakes else _UNKNOWN, mistakes=mistakes, their_text=text)


def _as_signed(theirs: str | None, signed: str) -> str | None:
    """Return their text without a newline that only an editor or a terminal added at its end."""
    return signed if theirs is not None and theirs.removesuffix("\n") == signed else theirs


def _by_text(protocol: Protocol, plain: Explanation, received: Received, keys: Keys, theirs: str) -> Explanation:
    checks, made, right = plain.checks, None, protocol.recipe()
    if keys.api:
        bare = theirs.removesuffix("\n")
        theirs = bare if right.makes(plain.given, bare, received, keys) else theirs
        made = finding.of_signing(protocol, received, keys, plain.given, theirs)
        if right.makes(plain.given, theirs, received, keys):
            checks = (*checks, _OF_THIS_TEXT)
        elif made is None and theirs != plain.text:
            checks = (*checks, _NOT_OF_IT)
    mistakes = finding.by_text(protocol, received, theirs)
    if theirs != plain.text:
        verdict = _FOUND_TEXT if mistakes else _TEXT_DIFFERS
    else:
        verdict = _FOUND if made else _SAME_BUT if keys.api else _SAME_TEXT
    all_mistakes = (*mistakes, made) if made else mistakes
    return replace(plain, their_text=theirs, verdict=verdict, mistakes=all_mistakes, checks=checks)


def _compared(protocol: Protocol, told: Explanation, received: Received) -> Explanation:
    """Add the rows of the two texts if they differ."""
    theirs = told.their_text
    if theirs is None or theirs == told.text:
        return told
    lines = protocol.split(told.text, received)
    rows = comparing.rows(lines, protocol.split(theirs, received))
    explained = finding.with_mistakes(protocol, rows, received, told.mistakes)
    return replace(told, rows=tuple(explained), first=comparing.first_difference(told.text, theirs, lines))


# --- other checks


def _checks(received: Received, given: str, keys: Keys, now: float) -> Iterator[Sentence]:
    in_query = {leaf.path for leaf in received.leaves if leaf.place != BODY}
    for name in AUTH:
        if not received.auth(name) and not (name == "signature" and given):
            yield Sentence(_IN_QUERY if name in in_query else _MISSING, False, {"name": name})
    if keys.api_key and received.auth("api_key") not in ("", keys.api_key):
        yield Sentence(N_("the secret belongs to the api_key %(key)s, not to this one"), False, {"key": keys.api_key})
    if stamp := received.auth("timestamp"):
        yield time_check(stamp, now)
    if (nonce := received.auth("nonce")) and not re.fullmatch(NONCE, nonce):
        yield Sentence(N_("nonce must have 8 to 64 of the characters A-Z a-z 0-9 _ . -"), False)
    if given and not re.fullmatch("[0-9a-f]{64}", given):
        yield Sentence(N_("signature must be 64 lowercase hex digits"), False)


_MISSING = N_("%(name)s is missing or is not a string")
_IN_QUERY = N_("%(name)s is in the query string, but this endpoint takes it from the body only")


def time_check(stamp: str, now: float) -> Sentence:
    """Compare a request's timestamp with the time when it arrived."""
    if not re.fullmatch("[0-9]+", stamp):
        return Sentence(N_("timestamp must be a whole number of seconds"), False)
    if len(stamp) > 12:
        return Sentence(N_("timestamp is in milliseconds: it must be in seconds"), False)
    behind = int(now) - int(stamp)
    text, is_good = N_("timestamp is %(seconds)s s off the server's clock: good"), True
    if abs(behind) > WINDOW:
        late = N_("timestamp is %(seconds)s s behind the server's clock: at most 300 are allowed")
        early = N_("timestamp is %(seconds)s s ahead of the server's clock: at most 300 are allowed")
        text, is_good = late if behind > 0 else early, False
    return Sentence(text, is_good, {"seconds": abs(behind)})
