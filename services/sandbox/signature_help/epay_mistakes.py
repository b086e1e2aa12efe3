"""The known mistakes in signing epay requests, each with its remedy and the ways to make it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from services.errors import N_
from services.sandbox.signature_help import epay_steps as steps
from services.sandbox.signature_help import wrong_steps
from services.sandbox.signature_help.finding import Protocol
from services.sandbox.signature_help.mistakes import MISTAKES, Mistake, mistake

_SHARED = {each.name: each for each in MISTAKES}


def _shared(name: str, *ways: Callable[..., Any]) -> Mistake:
    """Return a mistake that requests of the API can have, too, with more ways to make it."""
    known = _SHARED[name]
    return replace(known, ways=(*known.ways, *ways))


_LINES = N_("Join the fields as name=value with &. Encode nothing.")

_IN_TEXT = (
    mistake(
        "sign_type_signed",
        N_("sign_type is signed"),
        N_("Leave out sign_type, whether or not you send it."),
        fields=steps.SIGN_TYPE,
    ),
    mistake(
        "sign_signed",
        N_("the field sign is signed"),
        N_("Leave out sign. Add it to the request after you compute it."),
        fields=steps.SIGN,
    ),
    mistake(
        "blank_signed",
        N_("empty values are signed"),
        N_("Leave them out of the text. They may stay in the request."),
        fields=[steps.with_left_out("empty")],
    ),
    mistake(
        "zero_left_out",
        N_("fields whose value is 0 are left out, as if they were empty"),
        N_('Leave out only empty values. PHP\'s empty() also leaves out "0": compare with "" instead.'),
        fields=[steps.without_zeros],
    ),
    mistake(
        "own_query_signed",
        N_("fields of the shop's own address are part of the text"),
        N_("Verify only the fields of the notice, or use a notify_url without a query."),
        fields=[steps.with_left_out("own"), steps.with_left_out("own", "empty")],
    ),
    mistake(
        "unsorted",
        N_("the fields are in the order of the request or of the documentation, or reversed"),
        N_("Sort the fields by name, byte by byte."),
        order=(*wrong_steps.UNSORTED, steps.by_documentation),
    ),
    mistake(
        "sorted_otherwise",
        N_("the fields are sorted without regard to upper and lower case, or by value, too"),
        N_("Sort the fields by name, byte by byte."),
        order=wrong_steps.SORTED_OTHERWISE,
    ),
    mistake(
        "money",
        N_("money is signed with other digits than it is sent with"),
        N_("Write money once, such as 12.50, and sign and send the same text."),
        value=steps.MONEY,
    ),
    _shared("percent", *steps.PERCENT),
    mistake(
        "plus",
        N_("a value has a + in your text and a space in the request"),
        N_("URL-encode values when you send them, not before. A + that is not encoded arrives as a space."),
        value=steps.PLUS,
    ),
    mistake(
        "encoded_twice",
        N_("values are sent URL-encoded twice"),
        N_("Encode values once. Most HTTP libraries do it for you."),
        value=steps.TWICE,
    ),
    mistake(
        "html",
        N_("values are signed with HTML escapes, such as &amp;"),
        N_("Sign the characters themselves, in UTF-8."),
        value=steps.HTML,
    ),
    _shared("escaped"),
    _shared("trimmed"),
    mistake(
        "changed",
        N_("a value is changed after it is signed, such as http to https, or a name that is cut"),
        N_("Sign exactly the value that you send."),
        value=steps.CHANGED,
    ),
    mistake(
        "documented_only",
        N_("only the documented fields are signed"),
        N_("Sign every field that you send, such as sitename, device or cid, or do not send it."),
        fields=steps.DOCUMENTED,
    ),
    mistake(
        "left_out",
        N_("a field is sent that is not signed: it is added after signing"),
        N_("Sign every field that you send, such as sitename, device or cid, or do not send it."),
        fields=steps.LEFT_OUT,
    ),
    mistake(
        "not_sent",
        N_("a field is signed that is not sent"),
        N_("Send every field that you sign."),
        fields=steps.NOT_SENT,
    ),
    mistake(
        "joined_otherwise",
        N_("the fields are not joined as name=value with &"),
        _LINES,
        join=steps.JOINED,
    ),
)

_ENDED_KEY = mistake(
    "ended_key",
    N_("an expired key is used"),
    N_("Use the key from the latest rotation."),
    key=[wrong_steps.ended],
)

_MD5 = (
    mistake(
        "key_joined",
        N_("something is between the text and the key, such as &key= or &"),
        N_("Append the key directly to the last value."),
        join=steps.KEY_JOINED,
    ),
    mistake(
        "key_first",
        N_("the key is in front of the text"),
        N_("Append the key directly to the last value."),
        digest=steps.KEY_FIRST,
    ),
    _ENDED_KEY,
    mistake(
        "other_secret",
        N_("the API secret or the callback secret is used"),
        N_("Use the key of the epay gateway."),
        key=[steps.other],
    ),
    mistake(
        "key_misread",
        N_("the key has an extra space, newline or quotation mark, is in upper case, or is decoded"),
        N_("Use the key's characters: add nothing, decode nothing."),
        key=[wrong_steps.misread, steps.upper_key],
    ),
    mistake(
        "no_key",
        N_("the pid or an empty text is used as the key"),
        N_("Use the key of the epay gateway."),
        key=[steps.pid],
    ),
    mistake(
        "case",
        N_("the text is changed to upper or lower case before it is hashed"),
        N_("Leave the text and the key as they are."),
        digest=steps.CASE,
    ),
    mistake(
        "hmac",
        N_("HMAC is used instead of MD5"),
        N_("Use the MD5 of the text followed by the key."),
        digest=steps.HMACS,
    ),
    mistake(
        "hash",
        N_("another hash is used, or MD5 twice or shortened"),
        N_("Use the MD5 of the text followed by the key."),
        digest=steps.HASHES,
    ),
    replace(_SHARED["charset"], ways=steps.CHARSET),
)

_RSA = (
    mistake(
        "text_end",
        N_("the text has an additional character at its end, such as &"),
        N_("End the text after the last value."),
        join=[steps.ending(end) for end in ("&", "\n", "\r\n")],
    ),
    _shared("time_taken_twice"),
    _ENDED_KEY,
    mistake(
        "keys_swapped",
        N_("the keys of the merchant and the platform are swapped"),
        N_("Sign with the merchant's private key. Verify notices with the platform's public key."),
        key=[steps.other],
    ),
    mistake(
        "damaged",
        N_("the signature is changed on its way: + became a space, or it has line breaks or is URL-encoded twice"),
        N_("Write the base64 in one line, and URL-encode it once when you send it."),
        digest=steps.DAMAGED,
    ),
    mistake(
        "base64",
        N_("the signature is in hex, in base64 with - and _, or in base64 twice"),
        N_("Write the signature in standard base64, with + and /."),
        digest=steps.OTHER_BASE64,
    ),
    mistake(
        "hash",
        N_("SHA-1 or another hash is used, or a hash is signed instead of the text"),
        N_("Use SHA256withRSA (PKCS #1 v1.5, also called RSA2) on the text itself."),
        digest=steps.RSA_HASHES,
    ),
    replace(_SHARED["charset"], ways=steps.RSA_CHARSET),
)

MD5 = Protocol(steps.Md5Recipe, (*_IN_TEXT, *_MD5), steps.split)
RSA = Protocol(steps.RsaRecipe, (*_IN_TEXT, *_RSA), steps.split)
