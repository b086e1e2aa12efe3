"""Uploaded images: their type and dimensions are checked in the first bytes; nothing is decoded."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass

from services.errors import N_, OperatorError

PNG, JPEG, WEBP = "image/png", "image/jpeg", "image/webp"
# JPEG markers that begin a frame, whose header has the dimensions: SOF0 to SOF15 without DHT, JPG and DAC.
_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
NOT_AN_IMAGE = {
    (PNG, JPEG): N_("The file is not a PNG or JPEG image. Choose another file."),
    (PNG, JPEG, WEBP): N_("The file is not a PNG, JPEG or WebP image. Choose another file."),
}


@dataclass(frozen=True)
class Picture:
    """A stored image."""

    content_type: str
    content: bytes
    digest: str


def checked(content: bytes, field: str, types: tuple[str, ...], sides: tuple[int, int]) -> Picture:
    """Return an image with its type and digest.

    Args:
        field: the field of the form, for errors.
        types: the allowed types, a key of NOT_AN_IMAGE.
        sides: the least and the largest number of pixels of each side.

    Raises:
        OperatorError: it is not an image of these types, or its dimensions are out of range.
    """
    content_type, width, height = _read(content) or ("", 0, 0)
    if content_type not in types:
        raise OperatorError(NOT_AN_IMAGE[types], field)
    if not all(sides[0] <= side <= sides[1] for side in (width, height)):
        text = N_("The image has %(width)s × %(height)s pixels. Each side must have %(least)s to %(most)s.")
        bounds = {"least": str(sides[0]), "most": str(sides[1])}
        raise OperatorError(text, field, width=str(width), height=str(height), **bounds)
    return Picture(content_type, content, hashlib.sha256(content).hexdigest()[:16])


def _read(content: bytes) -> tuple[str, int, int] | None:
    """Return the type, width and height from the header; None if it has none or ends within it."""
    try:
        if content.startswith(b"\x89PNG\r\n\x1a\n") and content[12:16] == b"IHDR":
            return PNG, *struct.unpack(">II", content[16:24])
        if content.startswith(b"\xff\xd8\xff"):
            return JPEG, *_jpeg_size(content)
        if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
            return WEBP, *_webp_size(content)
    except (struct.error, IndexError):
        pass  # it ends within the header
    return None


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


def _webp_size(content: bytes) -> tuple[int, int]:
    """Return width and height from the first chunk (RFC 9649). Raises struct.error or IndexError if there is none."""
    kind = content[12:16]
    if kind == b"VP8X":
        low, high, low_height, high_height = struct.unpack("<HBHB", content[24:30])
        return (low | high << 16) + 1, (low_height | high_height << 16) + 1
    if kind == b"VP8L" and content[20] == 0x2F:
        (packed,) = struct.unpack("<I", content[21:25])
        return (packed & 0x3FFF) + 1, (packed >> 14 & 0x3FFF) + 1
    if kind == b"VP8 " and content[23:26] == b"\x9d\x01\x2a":
        width, height = struct.unpack("<HH", content[26:30])
        return width & 0x3FFF, height & 0x3FFF
    raise IndexError
