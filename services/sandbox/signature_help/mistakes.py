"""The known mistakes in signing, each with its remedy and the ways to make it.

A mistake replaces one step of `Recipe`, so each can be tried on a request, alone and in pairs, until one produces the
received text or signature.
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
    """One mistake. `what` completes "you get this if ..."; `ways` are the functions that take the step's place."""

    name: str
    step: str
    what: str
    cure: str
    ways: Sequence[Callable[..., Any]]

    @property
    def in_text(self) -> bool:
        """True if it changes the string to sign."""
        return self.step not in ("key", "digest")


def mistake(name: str, what: str, cure: str, **replaced: Sequence[Callable[..., Any]]) -> Mistake:
    """Return a mistake; the one keyword is the step of `Recipe` that its ways replace."""
    ((step, ways),) = replaced.items()
    return Mistake(name, step, what, cure, ways)


MISTAKES = (
    mistake(
        "newline_at_end",
        N_("the text ends with a newline"),
        N_("End the text after the last line. In a shell, use printf: echo adds a newline."),
        join=[
            steps.joined("\n", "\n"),
            steps.joined("\r\n", "\r\n"),
            steps.joined("\n", "\r\n"),
            steps.joined("\n", "\n\n"),
        ],
    ),
    mistake(
        "path",
        N_("line 1 contains the path of the URL"),
        N_("Write only the endpoint's name in line 1, such as createOrder."),
        first=steps.PATHS,
    ),
    mistake(
        "no_endpoint",
        N_("line 1, the endpoint's name, is missing"),
        N_("Put the endpoint's name before the sorted lines."),
        first=[lambda received: []],
    ),
    mistake(
        "other_endpoint",
        N_("line 1 is the name of another endpoint"),
        N_("Write the name of the endpoint that you call, spelled as in its URL."),
        first=steps.OTHER_ENDPOINTS,
    ),
    mistake(
        "blank_signed",
        N_("empty or null values are signed"),
        N_("Leave them out of the text. They may stay in the body."),
        fields=steps.BLANKS,
    ),
    mistake(
        "zero_left_out",
        N_("values that are 0 or false are left out, as if they were empty"),
        N_(
            'Leave out only null and "". PHP\'s empty() and a plain truth test also leave out 0: compare with "" '
            "instead."
        ),
        fields=steps.ZEROS,
    ),
    mistake(
        "query_left_out",
        N_("the query parameters are not signed"),
        N_("Sign the decoded query parameters together with those of the body."),
        fields=[steps.without_query],
    ),
    mistake(
        "unsorted",
        N_("the lines are in the order of the request, or reversed"),
        N_("Sort the lines by path, byte by byte."),
        order=steps.UNSORTED,
    ),
    mistake(
        "sorted_otherwise",
        N_("whole lines are sorted, or they are sorted by the rules of a language"),
        N_("Sort by path only, byte by byte (LC_ALL=C)."),
        order=steps.SORTED_OTHERWISE,
    ),
    mistake(
        "number",
        N_("a number is signed with other digits than it is sent with"),
        N_('Send amounts as strings, such as "12.50", and sign the same text.'),
        value=values.NUMBERS,
    ),
    mistake(
        "percent",
        N_("values are signed URL-encoded (percent-encoded)"),
        N_("Sign the characters themselves, in UTF-8."),
        value=values.PERCENT,
    ),
    mistake(
        "escaped",
        N_("values are signed with JSON escapes, such as \\u5f20"),
        N_("Sign the characters themselves, in UTF-8."),
        value=values.ESCAPED,
    ),
    mistake(
        "quoted",
        N_("strings are signed with their quotation marks"),
        N_("Sign a string without quotation marks."),
        value=values.QUOTED,
    ),
    mistake(
        "boolean",
        N_("true and false are written differently"),
        N_("Write true and false in lower case."),
        value=values.BOOLEANS,
    ),
    mistake(
        "trimmed",
        N_("spaces around a value are removed before it is signed"),
        N_("Sign exactly the value that you send."),
        value=values.TRIMMED,
    ),
    mistake(
        "time_taken_twice",
        N_("the signed timestamp differs from the one that is sent"),
        N_("Read the clock once, in seconds. Sign and send that value."),
        value=values.TIMES,
    ),
    mistake(
        "nesting",
        N_("objects and arrays are flattened differently"),
        N_("Join nested names with a dot. Number array items from 0."),
        fields=values.UNFLATTENED,
    ),
    mistake(
        "left_out",
        N_("a value that is sent is not signed"),
        N_("Sign every value except the signature: also api_key, timestamp and nonce."),
        fields=steps.LEFT_OUT,
    ),
    mistake(
        "signature_signed",
        N_("the text contains the signature itself"),
        N_("Compute the signature before you add it, or leave it out of the text."),
        fields=[steps.with_empty_signature, steps.with_signature],
    ),
    mistake(
        "line_ends",
        N_("the lines are joined with something other than a newline"),
        N_("Join the lines with one newline character, \\n."),
        join=[steps.joined(separator) for separator in ("\r\n", "&", "\\n", "", " ", ",", "|", "\r")],
    ),
    mistake(
        "json_signed",
        N_("the JSON is signed instead of the lines"),
        N_("Build the string to sign from lines."),
        join=steps.BODIES,
    ),
    mistake(
        "callback_secret",
        N_("the callback secret is used"),
        N_("Use the API secret. The callback secret is the one that begins with whsec_."),
        key=[steps.callback_secret],
    ),
    mistake(
        "ended_secret",
        N_("an expired secret is used"),
        N_("Use the secret from the latest rotation."),
        key=[steps.ended],
    ),
    mistake(
        "secret_misread",
        N_("the secret has an extra space, newline or quotation mark, or is decoded"),
        N_("Use the secret's characters as the key: add nothing, decode nothing."),
        key=[steps.misread],
    ),
    mistake(
        "no_secret",
        N_("the api_key or an empty text is used as the secret"),
        N_("Use the API secret as the key."),
        key=[steps.own_name],
    ),
    mistake(
        "upper_case",
        N_("the signature is in upper case"),
        N_("Write it in lowercase hex digits."),
        digest=[lambda key, text: in_hex(key, text).upper()],
    ),
    mistake(
        "base64",
        N_("the signature is in base64"),
        N_("Write it as 64 lowercase hex digits."),
        digest=[steps.in_base64, steps.url_base64, steps.base64_of_hex],
    ),
    mistake(
        "prefixed",
        N_("the signature has a prefix"),
        N_("Send only the 64 hex digits."),
        digest=[
            steps.prefixed(start)
            for start in ("sha256=", "v1,", "0x", "(stdin)= ", "SHA2-256(stdin)= ", "HMAC-SHA2-256(stdin)= ")
        ],
    ),
    mistake(
        "hash",
        N_("another hash is used, or no HMAC"),
        N_("Use HMAC-SHA256: the secret is the key, the text is the message."),
        digest=steps.HASHES,
    ),
    mistake(
        "charset",
        N_("the text is not encoded as UTF-8"),
        N_("Encode the text as UTF-8."),
        digest=[steps.in_charset(name) for name in ("gbk", "utf-16-le", "utf-16", "utf-8-sig", "latin-1", "ascii")],
    ),
)
