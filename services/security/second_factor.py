"""The second factor of operators: codes of an authenticator app (TOTP, RFC 6238), or recovery codes, each used once."""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from urllib.parse import urlsplit

import pyotp
from pyotp.exceptions import OTPVerificationError

from models.db.writer import transaction
from models.tables.operator import Operator, RecoveryCode, SecondFactor
from runtime.settings import NAME
from runtime.state import current
from services.errors import N_, OperatorError
from services.security import operators, sessions, vault

WINDOW = 1  # steps of 30 s by which a phone's clock may differ
RECOVERY_CODES = 10
_DIGITS = 20  # of a recovery code: 66 bits, so its plain hash cannot be guessed
_APP_CODE = re.compile(r"[0-9]{6}", re.ASCII)
NONE = N_("This account does not use two-factor authentication.")
INCORRECT = N_("The code is incorrect or was used before. Wait for the next one.")


def new_secret() -> str:
    """Return a new secret for an app, in base32."""
    return pyotp.random_base32()


def address(secret: str, name: str) -> str:
    """Return the content of an app's QR code: an otpauth:// address with the secret."""
    issuer = f"{NAME} ({urlsplit(current().settings.public_url).hostname})"
    return pyotp.TOTP(secret).provisioning_uri(name=name, issuer_name=issuer)


def of(operator: Operator) -> SecondFactor | None:
    """Return the account's second factor, or None."""
    return SecondFactor.get_or_none(SecondFactor.operator == operator.id)


def of_all() -> set[int]:
    """Return the ids of the accounts that have a second factor."""
    return {row.operator_id for row in SecondFactor.select(SecondFactor.operator)}


def is_required() -> bool:
    """Return whether every account must have a second factor (`second_factor_required`)."""
    return current().settings.second_factor_required


def is_missing(operator: Operator) -> bool:
    """Return whether the account must set up a second factor before it can do anything else."""
    return is_required() and of(operator) is None


def recovery_codes_left(operator: Operator) -> int:
    """Return the number of unused recovery codes."""
    return int(RecoveryCode.select().where(RecoveryCode.operator == operator.id).count())


def _timecode(secret: str, code: str) -> int:
    """Return the 30 s step of an app's code. Raises OperatorError."""
    try:
        if _APP_CODE.fullmatch(code):
            return pyotp.TOTP(secret).verify_and_get_timecode(code, valid_window=WINDOW)
    except OTPVerificationError:
        pass
    raise OperatorError(INCORRECT, "code")


def _plain(typed: str) -> str:
    return re.sub(r"[\s-]", "", typed)


def _hashed(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()


@transaction
def set_up(operator: Operator, secret: str, typed: str, session_id: int) -> list[str]:
    """Store an app's secret once a code proves it; the account's other sessions end.

    Returns:
        the recovery codes, which are stored as hashes only.

    Raises:
        OperatorError: the code does not match the secret, the account has a second factor, or it has been changed since
            `operator` was read.
    """
    timecode = _timecode(secret, _plain(typed))
    # Lock the row. A sign-in that found no second factor but has not started its session becomes invalid.
    same = (Operator.id == operator.id) & (Operator.session == operator.session)
    if not Operator.update(session=secrets.token_hex(16)).where(same).execute():
        raise OperatorError(N_("This account was changed. Sign in again."))
    if of(operator) is not None:
        raise OperatorError(N_("This account already uses two-factor authentication."))
    facts = {"secret": vault.encrypt(secret), "timecode": timecode, "createtime": int(time.time())}
    SecondFactor.add(operator_id=operator.id, **facts)
    sessions.end_all(operator, but=session_id)
    return _new_codes(operator)


@transaction
def renew_codes(operator: Operator) -> list[str]:
    """Replace all recovery codes; return the new ones. Raises OperatorError if the account has no second factor."""
    # Lock the row: otherwise, on Postgres, the codes of a concurrent renewal would also stay valid.
    same = SecondFactor.update(timecode=SecondFactor.timecode).where(SecondFactor.operator == operator.id)
    if not same.execute():
        raise OperatorError(NONE)
    return _new_codes(operator)


def _new_codes(operator: Operator) -> list[str]:
    RecoveryCode.delete().where(RecoveryCode.operator == operator.id).execute()
    codes = [f"{secrets.randbelow(10**_DIGITS):0{_DIGITS}}" for _ in range(RECOVERY_CODES)]
    RecoveryCode.add_all([{"operator_id": operator.id, "key": _hashed(code)} for code in codes])
    return ["-".join(re.findall(".{5}", code)) for code in codes]


def check(operator: Operator, typed: str) -> bool:
    """Accept a code of the account's app or a recovery code, each once.

    Returns:
        whether it was a recovery code.

    Raises:
        OperatorError: it is neither, or it was used already.
    """
    code, factor = _plain(typed), of(operator)
    if factor is None:
        raise OperatorError(NONE)
    if len(code) == _DIGITS:
        _use_recovery_code(operator, code)
        return True
    _use(factor, _timecode(vault.decrypt(factor.secret), code))
    return False


@transaction
def _use(factor: SecondFactor, timecode: int) -> None:
    unused = (SecondFactor.id == factor.id) & (SecondFactor.timecode < timecode)
    if not SecondFactor.update(timecode=timecode).where(unused).execute():
        raise OperatorError(INCORRECT, "code")


@transaction
def _use_recovery_code(operator: Operator, code: str) -> None:
    this = (RecoveryCode.operator == operator.id) & (RecoveryCode.key == _hashed(code))
    if not RecoveryCode.delete().where(this).execute():
        raise OperatorError(INCORRECT, "code")


@transaction
def remove(operator: Operator) -> None:
    """Remove the account's second factor and recovery codes. Raises OperatorError if it has none."""
    RecoveryCode.delete().where(RecoveryCode.operator == operator.id).execute()
    if not SecondFactor.delete().where(SecondFactor.operator == operator.id).execute():
        raise OperatorError(NONE)


@transaction
def reset(operator: Operator) -> None:
    """Remove the second factor after a device was lost, and end all sessions. Raises OperatorError if there is none."""
    remove(operator)
    operators.end_sessions(operator)
