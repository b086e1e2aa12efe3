"""The known mistakes in making a signature, each with its cure and with the ways to make it.

A mistake replaces one step of `Recipe`. So each can be tried on a request, alone and in pairs, until one gives the
text or the signature that came.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from services.errors import N_
from services.sandbox.signature_help import wrong_steps as steps
from services.sandbox.signature_help import wrong_values as values
from services.sandbox.signature_help.recipe import in_hex


@dataclass(frozen=True)
class Mistake:
    """One mistake. `what` goes on "you get this if ..."; `ways` are the functions that take the step's place."""

    name: str
    step: str
    what: str
    cure: str
    ways: Sequence[Callable[..., Any]]

    @property
    def in_text(self) -> bool:
        """Does it change the string to sign?"""
        return self.step not in ("key", "digest")


def _mistake(name: str, what: str, cure: str, **replaced: Sequence[Callable[..., Any]]) -> Mistake:
    """A mistake; the one keyword is the step of `Recipe` that its ways replace."""
    ((step, ways),) = replaced.items()
    return Mistake(name, step, what, cure, ways)


MISTAKES = (
    _mistake(
        "newline_at_end",
        N_("the text ends with a newline"),
        N_("Nothing follows the last line. In a shell, echo ends it with a newline; printf does not."),
        join=[
            steps.joined("\n", "\n"),
            steps.joined("\r\n", "\r\n"),
            steps.joined("\n", "\r\n"),
            steps.joined("\n", "\n\n"),
        ],
    ),
    _mistake(
        "path",
        N_("the path of the address stands in line 1"),
        N_("Line 1 is only the endpoint's name, such as createOrder."),
        first=steps.PATHS,
    ),
    _mistake(
        "no_endpoint",
        N_("line 1, the endpoint's name, is missing"),
        N_("Put the endpoint's name before the sorted lines."),
        first=[lambda received: []],
    ),
    _mistake(
        "other_endpoint",
        N_("another endpoint's name is signed"),
        N_("Sign the name of the endpoint that is called, written as in its address."),
        first=steps.OTHER_ENDPOINTS,
    ),
    _mistake(
        "blank_signed",
        N_("empty or null values are signed"),
        N_("Leave them out of the text; they may stay in the body."),
        fields=steps.BLANKS,
    ),
    _mistake(
        "query_left_out",
        N_("the query parameters are left out"),
        N_("Sign them, decoded, with the body's."),
        fields=[steps.without_query],
    ),
    _mistake(
        "unsorted",
        N_("the lines stand in the order in which they are sent, or backwards"),
        N_("Sort by path, by bytes."),
        order=steps.UNSORTED,
    ),
    _mistake(
        "sorted_otherwise",
        N_("finished lines are sorted, or they are sorted by the rules of a language"),
        N_("Sort by path alone, by bytes (LC_ALL=C)."),
        order=steps.SORTED_OTHERWISE,
    ),
    _mistake(
        "number",
        N_("a number is signed in other digits than are sent"),
        N_('Send amounts as strings, such as "12.50", and sign that very text.'),
        value=values.NUMBERS,
    ),
    _mistake(
        "percent",
        N_("values are signed URL-encoded (percent-encoded)"),
        N_("Sign the characters themselves, in UTF-8."),
        value=values.PERCENT,
    ),
    _mistake(
        "escaped",
        N_("values are signed as they are escaped in JSON, such as \\u5f20"),
        N_("Sign the characters themselves, in UTF-8."),
        value=values.ESCAPED,
    ),
    _mistake(
        "quoted",
        N_("texts are signed with their quotation marks"),
        N_("Sign a text as it is, without quotation marks."),
        value=values.QUOTED,
    ),
    _mistake(
        "boolean",
        N_("true and false are written otherwise"),
        N_("They are the words true and false, in lower case."),
        value=values.BOOLEANS,
    ),
    _mistake(
        "trimmed",
        N_("spaces around a value are cut off before it is signed"),
        N_("Sign the very value that is sent."),
        value=values.TRIMMED,
    ),
    _mistake(
        "time_taken_twice",
        N_("another timestamp is signed than is sent"),
        N_("Take the time once, in seconds, and both sign and send it."),
        value=values.TIMES,
    ),
    _mistake(
        "nesting",
        N_("objects and arrays are not flattened as the rule says"),
        N_("Join nested names by a dot; number array items from 0."),
        fields=values.UNFLATTENED,
    ),
    _mistake(
        "left_out",
        N_("a value that is sent is not signed"),
        N_("Sign all that is sent but the signature: api_key, timestamp and nonce, too."),
        fields=steps.LEFT_OUT,
    ),
    _mistake(
        "signature_signed",
        N_("the signature itself is in the text"),
        N_("Sign before the signature is added, or leave it out."),
        fields=[steps.with_empty_signature, steps.with_signature],
    ),
    _mistake(
        "line_ends",
        N_("the lines are joined by something else than a newline"),
        N_("Join them by one newline character, \\n, and nothing else."),
        join=[steps.joined(separator) for separator in ("\r\n", "&", "\\n", "", " ", ",", "|", "\r")],
    ),
    _mistake(
        "json_signed",
        N_("the JSON is signed instead of lines"),
        N_("Make the string to sign of lines, as the rule says."),
        join=steps.BODIES,
    ),
    _mistake(
        "callback_secret",
        N_("the callback secret is used"),
        N_("Requests use the API secret, not the one that begins with whsec_."),
        key=[steps.callback_secret],
    ),
    _mistake(
        "ended_secret",
        N_("an old secret is used that has ended"),
        N_("Use the secret that was shown when it was rotated."),
        key=[steps.ended],
    ),
    _mistake(
        "secret_misread",
        N_("the secret is used with a space, newline or quotation mark, or decoded"),
        N_("Use the secret's own characters as the key: nothing added, nothing decoded."),
        key=[steps.misread],
    ),
    _mistake(
        "no_secret",
        N_("the api_key, or nothing, is used as the secret"),
        N_("The key is the API secret."),
        key=[steps.own_name],
    ),
    _mistake(
        "upper_case",
        N_("the signature is written in upper case"),
        N_("Write it in lowercase hex digits."),
        digest=[lambda key, text: in_hex(key, text).upper()],
    ),
    _mistake(
        "base64",
        N_("the signature is written in base64"),
        N_("Write it as 64 lowercase hex digits."),
        digest=[steps.in_base64, steps.url_base64, steps.base64_of_hex],
    ),
    _mistake(
        "prefixed",
        N_("something stands before the signature"),
        N_("Send the 64 hex digits alone."),
        digest=[
            steps.prefixed(start)
            for start in ("sha256=", "v1,", "0x", "(stdin)= ", "SHA2-256(stdin)= ", "HMAC-SHA2-256(stdin)= ")
        ],
    ),
    _mistake(
        "hash",
        N_("another hash is used, or no HMAC"),
        N_("HMAC-SHA256: the secret is the key, the text the message."),
        digest=steps.HASHES,
    ),
    _mistake(
        "charset",
        N_("the text is signed in another encoding than UTF-8"),
        N_("Encode the text as UTF-8."),
        digest=[steps.in_charset(name) for name in ("gbk", "utf-16-le", "utf-16", "utf-8-sig", "latin-1", "ascii")],
    ),
)
