"""Requests as shops' epay plug-ins make them, and what the plug-ins require of responses and notices.

The comment above each shape names the source file that it was read from: the method, the fields, the form of the
values, and what is signed. The code here is ours. Keys of `SHOPS` are the shops' names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import md5
from urllib.parse import parse_qsl, unquote_plus, urlencode

Fields = Mapping[str, str]


def _signed_over(fields: Fields, *, empty: bool) -> str:
    """Return the text that is signed: sorted, joined, with or without empty values."""
    kept = {name: fields[name] for name in sorted(fields) if name not in ("sign", "sign_type")}
    return "&".join(f"{name}={value}" for name, value in kept.items() if value or empty)


def _most(fields: Fields, key: str) -> str:
    """Sign as most plug-ins do: empty values are dropped."""
    return md5(f"{_signed_over(fields, empty=False)}{key}".encode()).hexdigest()


def _all(fields: Fields, key: str) -> str:
    """Sign every field, including empty ones."""
    return md5(f"{_signed_over(fields, empty=True)}{key}".encode()).hexdigest()


def _encoded(fields: Fields, key: str) -> str:
    """Sign the decoded query string, without backslashes, also of empty values."""
    kept = {name: fields[name] for name in sorted(fields) if name not in ("sign", "sign_type")}
    return md5(f"{unquote_plus(urlencode(kept))}{key}".replace("\\", "").encode()).hexdigest()


@dataclass(frozen=True)
class Shop:
    """A shop's plug-in.

    - `form` has the fields of a payment, without `pid`, `out_trade_no`, `notify_url` and the signature; `{site}` is the
    shop's address, `{number}` its order number.
    - `sign` signs requests, and checks notices.
    - `needs` are fields without which the plug-in rejects a notice.
    """

    path: str
    method: str
    form: str
    sign: Callable[[Fields, str], str]
    number: str
    notify: str
    needs: tuple[str, ...] = ("trade_no", "out_trade_no")

    @property
    def fields(self) -> dict[str, str]:
        return dict(parse_qsl(self.form, keep_blank_values=True))

    def asks(self, pid: int, key: str, site: str, **other: str) -> dict[str, str]:
        """Return the fields of a request, in the plug-in's order; `other` replaces some."""
        given = {name: value.format(site=site, number=self.number) for name, value in self.fields.items()}
        given |= {"pid": str(pid), "out_trade_no": self.number, "notify_url": f"{site}{self.notify}"} | other
        return given | {"sign": self.sign(given, key), "sign_type": "MD5"}

    def accepts(self, notice: Fields, key: str) -> bool:
        """Return whether the plug-in answers `success` to this notice."""
        complete = all(notice.get(name) for name in self.needs)
        return complete and notice["sign"] == self.sign(notice, key)


SHOPS = {
    # QuantumNous/new-api controller/topup.go @ 0089a12 by Calcium-Ion/go-epay epay/order.go @ d8c8810:
    # the payer's browser posts a form. It credits the order by its number, whatever the amount.
    "new-api": Shop(
        "/submit.php",
        "POST",
        "type=alipay&name=TUC10&money=73.00&device=pc&return_url={site}/log",
        _most,
        "USR12NOa1B2c31764118800",
        "/api/user/epay/notify",
        ("trade_no", "out_trade_no", "type", "name", "money", "trade_status"),
    ),
    # Wei-Shaw/sub2api backend/internal/payment/provider/easypay.go @ 3e53177, payment mode "popup": a link.
    "sub2api page": Shop(
        "/submit.php",
        "GET",
        "type=wxpay&return_url={site}/payment/result&name=Sub2API 12.50 CNY 充值&money=12.50&cid=9&device=mobile",
        _most,
        "sub2_20261126Ab12Cd34",
        "/api/v1/payment/webhook/easypay",
    ),
    # The same file, payment mode "qrcode": its server posts a form, in which an unknown clientip is empty.
    "sub2api": Shop(
        "/mapi.php",
        "POST",
        "type=alipay&return_url={site}/payment/result&name=Sub2API 12.50 CNY 充值&money=12.50&clientip=",
        _most,
        "sub2_20261126Ef56Gh78",
        "/api/v1/payment/webhook/easypay",
    ),
    # assimon/dujiaoka app/Http/Controllers/Pay/YipayController.php @ 9f5467a: a form with the method GET.
    # `money` is a float of PHP, so it has no zeros at the end.
    "dujiaoka": Shop(
        "/submit.php",
        "GET",
        "money=12.5&name={number}&return_url={site}/pay/yipay/return_url?order_id={number}&type=alipay",
        _most,
        "KSPDZVBCQIPPKZNH",
        "/pay/yipay/notify_url",
        ("trade_no", "out_trade_no", "money"),
    ),
    # cedar2025/Xboard plugins-core/Epay/Plugin.php @ ee2c12e and v2board/v2board app/Payments/EPay.php @ 0ca4762: a
    # link without `type`. The page to return to is in the fragment. Empty fields of a notice are verified, too.
    "Xboard": Shop(
        "/submit.php",
        "GET",
        "money=9.9&name={number}&return_url={site}/#/order/{number}",
        _encoded,
        "2026112608501234567890",
        "/api/v1/guest/payment/notify/EPay/kQ3xW9aB",
    ),
    # lizhipay/acg-faka app/Pay/Epay/Impl/Pay.php @ 7671943^: the payer's browser posts a form.
    "acg-faka": Shop(
        "/submit.php",
        "POST",
        "name={number}&type=wxpay&money=10&return_url={site}/user/index/query?tradeNo={number}&sitename={number}",
        _all,
        "845261126084155198",
        "/user/api/order/callback.845261126084155198",
        ("out_trade_no", "money", "trade_status"),
    ),
    # Anankke/SSPanel-UIM src/Services/Gateway/Epay.php @ 7e5e1c3: its server posts a form.
    "SSPanel": Shop(
        "/mapi.php",
        "POST",
        "type=alipay&return_url={site}/user/invoice/7/view&name=Card %26 code = 1 中文&money=12.5"
        "&sitename=SSPanel-UIM&clientip=203.0.113.7",
        _all,
        "a5b8c1d0-4e2f",
        "/payment/notify/epay",
    ),
}
PAGES = [name for name, shop in SHOPS.items() if shop.path == "/submit.php"]
