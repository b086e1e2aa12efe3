"""One service per instance: a lock on its folder, which the kernel releases when the process ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from runtime.settings import denied
from services.errors import OperatorError

NAME = "service.lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock the folder's database against the service and other commands that need exclusive use.

    The file remains after the lock is released: removing it could remove another process's lock.

    Raises:
        OperatorError: another process has the lock, or the file can't be created.
    """
    try:
        handle = os.open(folder / NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except PermissionError:
        raise OperatorError(denied(folder / NAME)) from None
    except OSError as error:
        raise OperatorError(f"{folder / NAME}: {error.strerror}") from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            number = os.pread(handle, 20, 0).decode("ascii", "replace").strip() or "?"
            raise OperatorError(
                f"a service (process {number}) is already running on this instance: stop it first, "
                "or choose another ORDERS_INSTANCE"
            ) from None
        except OSError as error:  # a file system without locks
            raise OperatorError(f"{folder / NAME} cannot be locked: {error.strerror}") from None
        with suppress(OSError):  # the process id is only informative, so on a full disk the lock is held without it
            if os.geteuid() == 0:  # otherwise the service's own user could not open it later
                owner = folder.stat()
                os.fchown(handle, owner.st_uid, owner.st_gid)
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(handle)
