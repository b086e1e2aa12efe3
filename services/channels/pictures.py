"""Images of the payee's QR codes for manual channels: checked by their first bytes, stored in the database."""

from __future__ import annotations

import base64
import hashlib
import struct
from dataclasses import dataclass

from models.db.writer import transaction
from models.tables.channel import PAY_METHODS, Channel, ChannelPicture
from services.errors import N_, OperatorError

LARGEST = 200 * 1024  # bytes of an image
SMALLEST_SIDE, LARGEST_SIDE = 100, 4_000  # pixels
PNG, JPEG = "image/png", "image/jpeg"
# JPEG markers that begin a frame, whose header has the dimensions: SOF0 to SOF15 without DHT, JPG and DAC.
_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}


@dataclass(frozen=True)
class Picture:
    """A stored image."""

    content_type: str
    content: bytes
    digest: str


def put(channel: Channel, method: str, content: bytes) -> None:
    """Store the image for a payment method of the channel, in place of an earlier one.

    Raises:
        OperatorError: it is not a PNG or JPEG image, or its dimensions are out of range.
    """
    content_type, width, height = _read(content)
    if not all(SMALLEST_SIDE <= side <= LARGEST_SIDE for side in (width, height)):
        text = N_("The image has %(width)s × %(height)s pixels. Each side must have %(least)s to %(most)s.")
        bounds = {"least": str(SMALLEST_SIDE), "most": str(LARGEST_SIDE)}
        raise OperatorError(text, "picture", width=str(width), height=str(height), **bounds)
    _store(channel, method, content_type, content)


@transaction
def _store(channel: Channel, method: str, content_type: str, content: bytes) -> None:
    remove(channel, method)
    ChannelPicture.add(
        channel=channel.id,
        method=method,
        content_type=content_type,
        content=base64.b64encode(content).decode(),
        digest=hashlib.sha256(content).hexdigest()[:16],
    )


@transaction
def remove(channel: Channel, method: str) -> None:
    """Delete the image for a payment method, if there is one."""
    ChannelPicture.delete().where(ChannelPicture.channel == channel, ChannelPicture.method == method).execute()


def digests(channel: Channel) -> dict[str, str]:
    """Return the digests of the channel's images by payment method."""
    rows = ChannelPicture.select(ChannelPicture.method, ChannelPicture.digest).where(ChannelPicture.channel == channel)
    found = dict(rows.tuples())
    return {method: found[method] for method in PAY_METHODS if method in found}


def find(channel: Channel, method: str) -> Picture | None:
    """Return the image for a payment method, or None."""
    row = ChannelPicture.get_or_none(ChannelPicture.channel == channel, ChannelPicture.method == method)
    return Picture(row.content_type, base64.b64decode(row.content), row.digest) if row else None


def _read(content: bytes) -> tuple[str, int, int]:
    """Return the type and the dimensions from the header; nothing is decoded. Raises OperatorError."""
    try:
        if content.startswith(b"\x89PNG\r\n\x1a\n") and content[12:16] == b"IHDR":
            return PNG, *struct.unpack(">II", content[16:24])
        if content.startswith(b"\xff\xd8\xff"):
            return JPEG, *_jpeg_size(content)
    except (struct.error, IndexError):
        pass  # it ends within the header
    raise OperatorError(N_("The file is not a PNG or JPEG image. Choose another file."), "picture")


def _jpeg_size(content: bytes) -> tuple[int, int]:
    """Return width and height from the first frame header. Raises struct.error or IndexError if there is none."""
    at = 2
    while content[at] == 0xFF:
        marker = content[at + 1]
        if marker in _FRAMES:
            height, width = struct.unpack(">HH", content[at + 5 : at + 9])
            return width, height
        at += 1 if marker == 0xFF else 2 + struct.unpack(">H", content[at + 2 : at + 4])[0]
    raise IndexError
