"""Files that people upload in forms. Only a path below the console with one of these endings accepts larger bodies."""

from __future__ import annotations

from flask import request

from services.errors import N_, OperatorError

LIMIT = 5 * 1024 * 1024  # bytes of a request with a file
ENDINGS = ("/upload", "/merchant/new")


def is_upload(path: str) -> bool:
    """Return whether requests to this path of the service may have a body of up to LIMIT bytes."""
    return path.startswith("/console/") and path.endswith(ENDINGS)


def sent_file(field: str, most: int = LIMIT) -> tuple[str, bytes]:
    """Return the name and the content of the file that was sent in a field of the form, of at most `most` bytes.

    Raises:
        OperatorError: no file was sent, or it is empty or too large.
    """
    file = request.files.get(field)
    if file is None or not file.filename:
        raise OperatorError(N_("Choose a file."), field)
    content = file.stream.read(most + 1)
    if not content:
        raise OperatorError(N_("The file is empty. Choose another file."), field)
    if len(content) > most:
        text = N_("The file is larger than %(most)s KB. Choose a smaller file.")
        raise OperatorError(text, field, most=str(most // 1024))
    return file.filename, content
