"""Files that people upload in forms. Only a path below the console with one of these endings accepts larger bodies."""

from __future__ import annotations

import base64
import zlib

from flask import current_app, request
from itsdangerous import BadSignature, Signer

from services.errors import N_, OperatorError

LIMIT = 5 * 1024 * 1024  # bytes of a request with a file
MOST_HIDDEN = LIMIT - 256 * 1024  # bytes of a file in a hidden field; other fields need the rest
ENDINGS = ("/upload", "/merchant/new")


def is_upload(path: str) -> bool:
    """Return whether requests to this path of the service may have a body of up to LIMIT bytes."""
    return path.startswith("/console/") and path.endswith(ENDINGS)


def sent_file(field: str, most: int = LIMIT) -> tuple[str, bytes]:
    """Return name and content of the file in a field of the form, or in `hidden_fields`, of at most `most` bytes.

    Raises:
        OperatorError: no file was sent, or it is empty or too large.
    """
    file = request.files.get(field)
    if file is not None and file.filename:
        file.stream.seek(0)
        name, content = file.filename, file.stream.read(most + 1)
    else:
        name, content = _sent_again(field)
    if not content:
        raise OperatorError(N_("The file is empty. Choose another file."), field)
    if len(content) > most:
        text = N_("The file is larger than %(most)s KB. Choose a smaller file.")
        raise OperatorError(text, field, most=str(most // 1024))
    return name, content


def hidden_fields(field: str) -> dict[str, str]:
    """Return the fields by which a form sends the file of this request again: the service does not store files.

    Empty without a file, or if it is too large for a field.
    """
    try:
        name, content = sent_file(field)
    except OperatorError:
        return {}
    packed = _signer(field).sign(base64.b64encode(zlib.compress(content))).decode()
    return {f"{field}-name": name, f"{field}-content": packed} if len(packed) <= MOST_HIDDEN else {}


def _sent_again(field: str) -> tuple[str, bytes]:
    """Return the file in hidden fields. Raises OperatorError."""
    try:
        packed = _signer(field).unsign(request.form.get(f"{field}-content", ""))
    except BadSignature:
        raise OperatorError(N_("Choose a file."), field) from None
    return request.form.get(f"{field}-name", ""), zlib.decompress(base64.b64decode(packed))


def _signer(field: str) -> Signer:
    return Signer(str(current_app.secret_key), salt=f"file in {field}")
