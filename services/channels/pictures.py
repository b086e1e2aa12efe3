"""Images of the payee's QR codes for manual channels: checked by their first bytes, stored in the database."""

from __future__ import annotations

import base64

from gateways.base import METHODS
from models.db.writer import transaction
from models.tables.channel import Channel, ChannelPicture
from services.channels.calls import driver_of
from services.platform import images
from services.platform.images import Picture

LARGEST = 200 * 1024  # bytes of an image
SIDES = (100, 4_000)  # pixels


def put(channel: Channel, method: str, content: bytes) -> None:
    """Store the image for a payment method of the channel, in place of an earlier one.

    Raises:
        OperatorError: it is not a PNG or JPEG image, or its dimensions are out of range.
    """
    _store(channel, method, images.checked(content, "picture", (images.PNG, images.JPEG), SIDES))


@transaction
def _store(channel: Channel, method: str, picture: Picture) -> None:
    remove(channel, method)
    ChannelPicture.add(
        channel=channel.id,
        method=method,
        content_type=picture.content_type,
        content=base64.b64encode(picture.content).decode(),
        digest=picture.digest,
    )


@transaction
def remove(channel: Channel, method: str) -> None:
    """Delete the image for a payment method, if there is one."""
    ChannelPicture.delete().where(ChannelPicture.channel == channel, ChannelPicture.method == method).execute()


def digests(channel: Channel) -> dict[str, str]:
    """Return the digests of the channel's images by payment method."""
    rows = ChannelPicture.select(ChannelPicture.method, ChannelPicture.digest).where(ChannelPicture.channel == channel)
    found = dict(rows.tuples())
    return {method: found[method] for method in METHODS if method in found}


def unusable_methods(channel: Channel) -> dict[str, str]:
    """Return the channel's payment methods by which payers cannot pay with its settings: why, for translation."""
    without = driver_of(channel).unusable_methods()
    found = {method: without[method] for method in channel.pay_methods if method in without}
    shown = digests(channel) if found else {}
    return {method: why for method, why in found.items() if method not in shown}


def find(channel: Channel, method: str) -> Picture | None:
    """Return the image for a payment method, or None."""
    row = ChannelPicture.get_or_none(ChannelPicture.channel == channel, ChannelPicture.method == method)
    return Picture(row.content_type, base64.b64decode(row.content), row.digest) if row else None
