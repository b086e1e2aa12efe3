"""Bills and balances that drivers fetch: the vendors' formats with their traps, and every response that is refused.

`sdk` in a name: independent packages fetch the same from our loopback.
"""

import gzip
import io
import json
import time
import zipfile
from datetime import date
from urllib.request import urlopen

import pytest
from alipay import AliPay
from werkzeug import Response

from gateways import bills, epay, registry, upstream
from gateways.base import ChannelUnknown, Problem, StatementNotReady
from runtime.settings import Settings
from runtime.state import Runtime
from services.errors import OperatorError
from services.statements import parse, tables
from tests.upstreams.alipay import APP_ID, Alipay
from tests.upstreams.bills import (
    ALIPAY_TRADE,
    Move,
    Row,
    alipay_flow,
    alipay_trade,
    archive,
    flow_of,
    wechat_fundflow,
    wechat_tradebill,
)
from tests.upstreams.epay import PID, EpayPlatform
from tests.upstreams.loopback import BareServer, key_pair
from tests.upstreams.wechatpay import WechatPay

DAY, TODAY = date(2026, 5, 1), "2026-05-01"
PAYMENT = Row("1" * 24, "4200001", 10_000, f"{TODAY} 09:00:00", fee=60)
LARGE = Row("2" * 24, "4200002", 1_234_567, f"{TODAY} 10:00:00", fee=7_407)
REFUND = Row("1" * 24, "4200001", 4_000, f"{TODAY} 11:00:00", fee=24, refund_no="5" * 24, refund_id="503")
ROWS = [PAYMENT, LARGE, REFUND]


@pytest.fixture(autouse=True)
def settings():
    Runtime(Settings(private_channels=True)).enter()


@pytest.fixture
def wechat(web_server):
    return WechatPay(web_server)


@pytest.fixture
def alipay(web_server):
    return Alipay(web_server)


@pytest.fixture
def ours(wechat):
    return registry.build("wechatpay", wechat.config())


@pytest.fixture
def our_alipay(alipay):
    return registry.build("alipay", alipay.config("key"))


def read(driver, raw):
    """The lines of a fetched bill, as a comparison reads them."""
    return parse.read(raw, driver.statement, (), all_paid=False, official=True).lines


def facts(lines):
    """What a comparison uses of each line."""
    return [(each.state, each.number, each.reference, abs(each.amount), each.fee, each.refund_number) for each in lines]


def expected(rows):
    return [
        ("refunded" if row.refund_no else "paid", row.order_no, row.reference, row.amount, row.fee, row.refund_no)
        for row in rows
    ]


def without_number_of(found):
    """WeChat writes 0 as the number of a refund on the lines of payments, which are not read."""
    return [(*each[:5], each[5] if each[0] == "refunded" else "") for each in found]


# --- the formats

GOODS = 'a, b, "c", 12.50'
WECHAT_TRAPS = {
    "usual": {},
    "no mark of UTF-8": {"bom": False},
    "GBK": {"bom": False, "charset": "gb18030"},
    "a backtick before each name": {"marked_header": True},
    "tabs behind values": {"padding": "\t"},
    "blanks behind values": {"padding": " "},
    "short line ends": {"end": "\n"},
}


@pytest.mark.parametrize("trap", WECHAT_TRAPS)
@pytest.mark.parametrize("goods", ["订单", GOODS], ids=["plain goods", "goods with commas"])
def test_wechats_bill_is_read_with_its_traps(trap, goods, wechat, ours):
    rows = [Row(**{**vars(row), "goods": goods}) for row in ROWS]
    wechat.bills[TODAY] = wechat_tradebill(rows, **WECHAT_TRAPS[trap])
    raw = ours.fetch_statement(DAY)
    assert raw == wechat.bills[TODAY]
    assert without_number_of(facts(read(ours, raw))) == expected(rows)


@pytest.mark.parametrize(
    "written",
    [{}, {"padding": " "}, {"padding": ""}, {"grouped": True}],
    ids=["tabs", "blanks", "no padding", "grouped amounts"],
)
@pytest.mark.parametrize("free", [{}, {"goods": GOODS}, {"note": "x, y, 1.00"}], ids=["plain", "goods", "note"])
def test_alipays_bill_is_read_with_its_traps(written, free, alipay, our_alipay):
    rows = [Row(**{**vars(row), **free}) for row in ROWS]
    alipay.bills[TODAY] = alipay_trade(rows, **written)
    assert facts(read(our_alipay, our_alipay.fetch_statement(DAY))) == expected(rows)


def test_commas_in_two_texts_of_a_line_are_refused_rather_than_guessed(alipay, our_alipay):
    alipay.bills[TODAY] = alipay_trade([Row(**{**vars(PAYMENT), "goods": "a, b", "note": "c, d"})])
    with pytest.raises(OperatorError, match="more values than the file has columns"):
        read(our_alipay, our_alipay.fetch_statement(DAY))


def test_a_bill_without_lines_has_none(wechat, ours, alipay, our_alipay):
    wechat.bills[TODAY], alipay.bills[TODAY] = wechat_tradebill([]), alipay_trade([])
    assert read(ours, ours.fetch_statement(DAY)) == read(our_alipay, our_alipay.fetch_statement(DAY)) == []


@pytest.mark.parametrize("state", ["SUCCESS", "PROCESSING", "FAIL", "CHANGE", "SOMETHING"])
def test_only_success_proves_a_refund_in_wechats_bill(state, wechat, ours):
    wechat.bills[TODAY] = wechat_tradebill([Row(**{**vars(REFUND), "state": state})])
    (line,) = read(ours, ours.fetch_statement(DAY))
    assert (line.state, line.is_unproven) == ("refunded", state != "SUCCESS")


def test_a_revoked_payment_moved_no_money(wechat, ours):
    wechat.bills[TODAY] = wechat_tradebill([Row(**{**vars(PAYMENT), "state": "REVOKED"})])
    assert [line.state for line in read(ours, ours.fetch_statement(DAY))] == ["failed"]


def test_a_coupon_at_the_merchants_expense_is_a_part_of_the_fee(wechat, ours, alipay, our_alipay):
    rows = [Row(**{**vars(row), "coupon": 500}) for row in ROWS]
    wechat.bills[TODAY], alipay.bills[TODAY] = wechat_tradebill(rows), alipay_trade(rows)
    for driver in (ours, our_alipay):
        lines = read(driver, driver.fetch_statement(DAY))
        # The amounts are those of the orders.
        assert [abs(line.amount) for line in lines] == [10_000, 1_234_567, 4_000]
        assert [line.fee for line in lines] == [560, 7_907, 524]


def test_a_fee_with_the_opposite_sign_is_never_the_favorable_case(wechat, ours, alipay, our_alipay):
    rows = [Row(**{**vars(row), "fee": -row.fee}) for row in (PAYMENT, REFUND)]
    wechat.bills[TODAY], alipay.bills[TODAY] = wechat_tradebill(rows), alipay_trade(rows)
    for driver in (ours, our_alipay):
        # The channel returned a fee with the payment, and took another one with the refund.
        assert [line.fee for line in read(driver, driver.fetch_statement(DAY))] == [-60, -24]


def test_another_kind_of_business_is_refused_rather_than_guessed(alipay, our_alipay):
    alipay.bills[TODAY] = alipay_trade([PAYMENT], kind="其它")
    with pytest.raises(OperatorError, match="is none of"):
        read(our_alipay, our_alipay.fetch_statement(DAY))


def test_a_bill_may_be_as_large_as_the_comparison_reads():
    assert bills.BILL_BYTES == tables.MOST_BYTES


# --- balances


@pytest.mark.parametrize("newest_first", [False, True])
def test_the_balance_is_that_of_the_last_line_in_any_order(newest_first, wechat, ours, alipay, our_alipay):
    moves = flow_of([*ROWS, Row("3" * 24, "4200003", 500, f"{TODAY} 11:00:00", fee=3)], balance=200_00)
    wechat.flows[TODAY] = wechat_fundflow(moves, newest_first=newest_first)
    alipay.flows[TODAY] = alipay_flow(moves, newest_first=newest_first)
    balance = 200_00 + 10_000 - 60 + 1_234_567 - 7_407 - 4_000 + 24 + 500 - 3
    assert (ours.fetch_balance(DAY), our_alipay.fetch_balance(DAY)) == (balance, balance)


def test_moves_of_one_second_that_cancel_out_leave_the_balance_before_them(wechat, ours):
    late = f"{TODAY} 23:00:00"
    wechat.flows[TODAY] = wechat_fundflow([*flow_of([PAYMENT]), Move(late, 500, 10_440), Move(late, -500, 9_940)])
    assert ours.fetch_balance(DAY) == 9_940


def test_commas_in_texts_do_not_move_the_balance(wechat, ours, alipay, our_alipay):
    moves = flow_of([Row(**{**vars(PAYMENT), "goods": GOODS})])
    wechat.flows[TODAY], alipay.flows[TODAY] = wechat_fundflow(moves), alipay_flow(moves)
    assert (ours.fetch_balance(DAY), our_alipay.fetch_balance(DAY)) == (9_940, 9_940)


def test_a_day_without_moves_has_no_balance(wechat, ours, alipay, our_alipay):
    for driver in (ours, our_alipay):
        assert driver.fetch_balance(DAY) is None
    wechat.flows[TODAY], alipay.flows[TODAY] = wechat_fundflow([]), alipay_flow([])
    for driver in (ours, our_alipay):
        assert driver.fetch_balance(DAY) is None


@pytest.mark.parametrize(
    "flow",
    [
        wechat_tradebill(ROWS),
        wechat_fundflow([Move(f"{TODAY} 09:00:00", 100, 100), Move(f"{TODAY} 09:00:00", 100, 900)]),
        wechat_fundflow([Move(f"{TODAY} 09:00:00", 100, 100)]).replace("收入,".encode(), "其它,".encode()),
        wechat_fundflow([Move(f"{TODAY} 09:00:00", 100, 100)]).replace(TODAY.encode(), b"today"),
    ],
    ids=["other columns", "balances that do not follow each other", "an unknown direction", "no time"],
)
def test_a_flow_that_cannot_be_read_has_no_balance(flow, wechat, ours):
    wechat.flows[TODAY] = flow
    with pytest.raises(ChannelUnknown):
        ours.fetch_balance(DAY)


# --- no bill


@pytest.mark.parametrize("status", [400, 404, 500])
def test_wechats_code_counts_and_not_the_status(status, wechat, ours):
    wechat.refuses.append((status, {"code": "NO_STATEMENT_EXIST", "message": "账单文件不存在"}))
    assert ours.fetch_statement(DAY) is None
    wechat.refuses.append((status, {"code": "STATEMENT_CREATING", "message": "账单生成中"}))
    with pytest.raises(StatementNotReady, match="账单生成中"):
        ours.fetch_statement(DAY)


@pytest.mark.parametrize("code", ["isp.bill_not_exist", "BILL_NOT_EXIST", "NO_BILL_DATA"])
@pytest.mark.parametrize("outer", ["40004", "20000"])
def test_alipay_has_no_bill(outer, code, alipay, our_alipay):
    alipay.errs(outer, code)
    assert our_alipay.fetch_statement(DAY) is None


def test_a_missing_permission_is_named(wechat, ours, alipay, our_alipay):
    wechat.refuses.append((403, {"code": "NO_AUTH", "message": "商户无权限"}))
    alipay.errs("40006", "isv.insufficient-isv-permissions")
    for driver, code in ((ours, "NO_AUTH"), (our_alipay, "isv.insufficient-isv-permissions")):
        with pytest.raises(ChannelUnknown, match=code) as refused:
            driver.fetch_statement(DAY)
        assert refused.value.problem is Problem.REJECTED
        assert not isinstance(refused.value, StatementNotReady)


def test_an_unsigned_or_forged_response_names_no_file(wechat, ours, alipay, our_alipay, monkeypatch):
    wechat.bills[TODAY], alipay.bills[TODAY] = wechat_tradebill(ROWS), alipay_trade(ROWS)
    with monkeypatch.context() as patch:
        patch.setattr(wechat, "signed", lambda *_: {})
        with pytest.raises(ChannelUnknown, match="no signature"):
            ours.fetch_statement(DAY)
    monkeypatch.setattr("tests.upstreams.wechatpay.key_pair", lambda _: key_pair("somebody"))
    monkeypatch.setattr(alipay, "private", key_pair("somebody")[0])
    for driver in (ours, our_alipay):
        with pytest.raises(ChannelUnknown) as refused:
            driver.fetch_statement(DAY)
        assert refused.value.problem is Problem.NOT_AUTHENTIC
    alipay.errs("40004", "isp.bill_not_exist", signed=False)
    with pytest.raises(ChannelUnknown, match="unsigned error"):
        our_alipay.fetch_statement(DAY)


# --- damaged files

CSV = wechat_tradebill(ROWS)
WECHAT_DAMAGES = {
    "another file": lambda _: gzip.compress(CSV.replace(b"100.00", b"900.00")),
    "no gzip": lambda file: file,
    "incomplete": lambda file: gzip.compress(file)[:-20],
    "bytes behind it": lambda file: gzip.compress(file) + b"x",
    "two files": lambda file: gzip.compress(file) + gzip.compress(b"x"),
    "empty": lambda _: b"",
    "a bomb": lambda _: gzip.compress(bytes(bills.BILL_BYTES + 1)),
}


@pytest.mark.parametrize("damage", WECHAT_DAMAGES)
def test_a_damaged_file_of_wechat_is_refused(damage, wechat, ours):
    wechat.bills[TODAY], wechat.packs = CSV, WECHAT_DAMAGES[damage]
    with pytest.raises(ChannelUnknown, match="too large" if damage == "a bomb" else "damaged"):
        ours.fetch_statement(DAY)


@pytest.mark.parametrize("told", [{"hash_value": "0" * 40}, {"hash_value": ""}, {"hash_type": "MD5"}], ids=str)
def test_a_file_without_its_hash_is_refused(told, wechat, ours):
    wechat.bills[TODAY], wechat.bill = CSV, told
    with pytest.raises(ChannelUnknown, match=r"damaged|unknown type of hash"):
        ours.fetch_statement(DAY)


def _spoilt(packed):
    at = packed.index(b"PK\x01\x02", 100) - 40  # within the content of the last file
    return packed[:at] + bytes([packed[at] ^ 255]) + packed[at + 1 :]


NAME = "2088_20260501_业务明细.csv"
ALIPAY_DAMAGES = {
    "no archive": b"<html>expired</html>",
    "incomplete": alipay_trade(ROWS)[:-30],
    "another checksum": _spoilt(alipay_trade(ROWS)),
    "sums only": archive({"2088_业务明细(汇总).csv": b""}),
    "two files of details": archive({NAME: b"", f"2_{NAME}": b""}),
    "a compression without a limit": archive({NAME: bytes(1000)}, method=zipfile.ZIP_LZMA),
    "names in another charset": archive({NAME: b""}, charset="utf-8"),
    "a bomb": archive({NAME: bytes(bills.BILL_BYTES + 1)}),
}


@pytest.mark.parametrize("damage", ALIPAY_DAMAGES)
def test_a_damaged_archive_of_alipay_is_refused(damage, alipay, our_alipay):
    alipay.bills[TODAY] = ALIPAY_DAMAGES[damage]
    with pytest.raises(ChannelUnknown):
        our_alipay.fetch_statement(DAY)


def test_an_archive_with_a_marked_name_is_read_too(alipay, our_alipay):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as packed:
        packed.writestr(NAME, ALIPAY_TRADE.encode())
    alipay.bills[TODAY] = made.getvalue()
    assert our_alipay.fetch_statement(DAY) == ALIPAY_TRADE.encode()


# --- the address of the file

FOREIGN = [
    "https://example.com/file?token=SECRET",
    "https://api.mch.weixin.qq.com.example.com/file?token=SECRET",
    "https://notmch.weixin.qq.com/file?token=SECRET",
    "https://api.mch.weixin.qq.com@example.com/file?token=SECRET",
    "https://example.com\\.mch.weixin.qq.com/file?token=SECRET",
    "https://api.mch.weixin.qq.com:8443/file?token=SECRET",
    "http://api.mch.weixin.qq.com/file?token=SECRET",
    "http://127.0.0.1:1/file?token=SECRET",
    "file:///etc/passwd?token=SECRET",
    "https://[/file?token=SECRET",
    "",
]


@pytest.mark.parametrize("address", FOREIGN)
def test_a_file_is_fetched_from_the_vendor_only(address, wechat, ours, alipay, our_alipay):
    wechat.bills[TODAY], wechat.bill = CSV, {"download_url": address}
    alipay.bills[TODAY], alipay.bill = b"", {"bill_download_url": address.replace("mch.weixin.qq.com", "alipay.com")}
    for driver in (ours, our_alipay):
        if driver is our_alipay and address.startswith("http://api"):
            continue  # Alipay's documents show http: the driver calls https
        with pytest.raises(ChannelUnknown, match="another host for the file") as refused:
            driver.fetch_statement(DAY)
        assert "SECRET" not in str(refused.value)


@pytest.mark.parametrize(
    ("told", "called"),
    [
        ("http://dwbillcenter.alipay.com/f?a=1", "https://dwbillcenter.alipay.com/f?a=1"),
        ("https://dwbillcenter.alipay.com/f?a=1", "https://dwbillcenter.alipay.com/f?a=1"),
        ("http://dwbillcenter.alipaydev.com/f", "https://dwbillcenter.alipaydev.com/f"),
    ],
)
def test_alipays_hosts_are_called_by_https(told, called, alipay, our_alipay, monkeypatch):
    asked = []
    monkeypatch.setattr(upstream.Upstream, "download", lambda _, address: asked.append(address) or alipay_trade(ROWS))
    alipay.bills[TODAY], alipay.bill = b"", {"bill_download_url": told}
    assert our_alipay.fetch_statement(DAY)
    assert asked == [called]


@pytest.mark.parametrize("host", ["api.mch.weixin.qq.com", "api2.mch.weixin.qq.com", "mch.weixin.qq.com"])
def test_wechats_hosts_are_called(host, ours):
    address = f"https://{host}/v3/billdownload/file?token=x"
    assert ours._upstream.file_address(address, ("mch.weixin.qq.com",)) == address


def test_a_redirect_of_the_file_is_not_followed(wechat, ours, monkeypatch):
    wechat.bills[TODAY] = CSV
    answer, heard = wechat.answer, []

    def moved(path, request):
        heard.append(path)
        if path == "billdownload/file":
            return Response(status=302, headers={"Location": f"{wechat.url}/elsewhere"})
        return answer(path, request)

    monkeypatch.setattr(wechat, "answer", moved)
    with pytest.raises(ChannelUnknown, match="HTTP 302"):
        ours.fetch_statement(DAY)
    assert heard == ["bill/tradebill", "billdownload/file"]


# --- the download


@pytest.fixture
def serving():
    """`serving(serve)`: the beginning of the addresses of a server, until the end of the test."""
    servers = []

    def start(serve):
        servers.append(BareServer(serve).__enter__())
        return f"http://127.0.0.1:{servers[-1].port}"

    yield start
    for server in servers:
        server.__exit__()


def _drip(carrier, over):
    carrier.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    while not over.wait(0.05):
        carrier.sendall(b"x")


def test_a_file_that_arrives_too_slowly_is_given_up(serving, monkeypatch):
    monkeypatch.setattr(upstream, "FILE_SECONDS", 0.6)
    base, began = serving(_drip), time.monotonic()
    with pytest.raises(ChannelUnknown, match="no response"):
        upstream.Upstream(base).download(f"{base}/file")
    assert time.monotonic() - began < 5


def test_a_file_has_its_own_limits(serving, monkeypatch):
    size = 200_000  # more than another response may have
    base = serving(
        lambda carrier, _: carrier.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + bytes(size))
    )
    assert upstream.Upstream(base).download(f"{base}/file") == bytes(size)
    with pytest.raises(ChannelUnknown):
        upstream.Upstream(base).get("file", {})
    monkeypatch.setattr(upstream, "FILE_BYTES", 100_000)
    with pytest.raises(ChannelUnknown, match="no response"):
        upstream.Upstream(base).download(f"{base}/file")


# --- independent packages fetch the same


def test_wechats_sdk_fetches_the_bill_and_the_flow_from_the_loopback(wechat, wechat_sdk, ours):
    wechat.bills[TODAY], wechat.flows[TODAY] = CSV, wechat_fundflow(flow_of(ROWS))
    sdk = wechat_sdk()
    for asked, theirs in ((sdk.trade_bill, CSV), (sdk.fundflow_bill, wechat.flows[TODAY])):
        code, text = asked(TODAY)  # it verifies the signature
        assert code == 200
        code, packed = sdk.download_bill(json.loads(text)["download_url"])
        assert (code, gzip.decompress(packed)) == (200, theirs)
    assert json.loads(sdk.trade_bill("2026-05-02")[1])["code"] == "NO_STATEMENT_EXIST"
    assert ours.fetch_statement(DAY) == CSV


@pytest.mark.filterwarnings("ignore:X509.get_issuer:DeprecationWarning")  # in the SDK
def test_alipays_sdk_fetches_the_bill_from_the_loopback(alipay, our_alipay, monkeypatch):
    monkeypatch.setenv("TZ", "CST-8")  # its requests are stamped in local time
    time.tzset()
    alipay.written, alipay.bills[TODAY] = "pretty", alipay_trade(ROWS)
    sdk = AliPay(APP_ID, None, alipay.app_private, alipay.public)
    sdk._gateway = alipay.gateway
    asked = {"bill_type": "trade", "bill_date": TODAY}
    told = sdk.server_api("alipay.data.dataservice.bill.downloadurl.query", asked)
    with urlopen(told["bill_download_url"]) as file:
        packed = zipfile.ZipFile(io.BytesIO(file.read()), metadata_encoding="gbk")
    assert [name.rpartition("_")[2] for name in packed.namelist()] == ["业务明细(汇总).csv", "业务明细.csv"]
    assert packed.read(packed.namelist()[1]) == our_alipay.fetch_statement(DAY)
    monkeypatch.undo()
    time.tzset()


# --- epay: the platform's list of orders


@pytest.fixture
def platform(web_server):
    return EpayPlatform(web_server)


@pytest.fixture
def our_epay(platform):
    return registry.build("epay", platform.config("2", list_orders="true"))


def listed(platform, number, at, **more):
    """Let the platform have a paid order of 100 yuan."""
    facts = {"pid": PID, "trade_no": f"T{number}", "out_trade_no": str(number), "money": "100.00", "status": "1"}
    platform.orders[str(number)] = facts | {"addtime": at, "endtime": at} | more


def test_an_epay_platforms_orders_of_a_day_are_listed(platform, our_epay):
    listed(platform, 1, "2026-04-30 23:59:59")
    for number in range(2, 131):
        listed(platform, number, f"{TODAY} {number // 60:02d}:{number % 60:02d}:00")
    listed(platform, 131, f"{TODAY} 13:00:00", status="0", endtime=None)
    listed(platform, 132, f"{TODAY} 14:00:00", refundmoney="40.00")  # the status of a paid order, as at some platforms
    listed(platform, 133, "2026-05-02 00:00:00")
    lines = read(our_epay, our_epay.fetch_statement(DAY))
    assert sorted(int(line.number) for line in lines) == sorted([*range(2, 133), 132])
    assert [(line.state, line.amount) for line in lines if line.number == "132"] == [
        ("paid", 10_000),
        ("refunded", 4_000),
    ]
    assert [line.state for line in lines if line.number == "131"] == ["failed"]
    assert read(our_epay, our_epay.fetch_statement(date(2026, 4, 29))) == []


def test_epay_lists_orders_only_if_the_merchant_may_and_nobody_can_forge_the_list(platform):
    may = {"list_orders": "true"}
    for config, offers in (
        (platform.config("2"), False),
        (platform.config("2", **may), True),
        (platform.config("1", **may), False),
        (platform.config("2", **may, base_url="http://pay.example.com"), False),
        (platform.config("2", **may, base_url="https://pay.example.com"), True),
    ):
        assert registry.build("epay", config).fetches_statements is offers


def test_a_list_that_loses_orders_while_it_is_read_is_refused(platform, our_epay, monkeypatch):
    for number in range(200):
        listed(platform, number, f"{TODAY} 12:00:00")
    answer = platform.answer

    def deletes(path, request):
        said = answer(path, request)
        platform.orders = dict(list(platform.orders.items())[:-20])  # the newest ones
        return said

    monkeypatch.setattr(platform, "answer", deletes)
    with pytest.raises(ChannelUnknown, match="changed while it was read"):
        our_epay.fetch_statement(DAY)


def test_a_platform_that_repeats_the_first_page_has_no_list(platform, our_epay, monkeypatch):
    for number in range(60):
        listed(platform, number, f"{TODAY} 12:00:00")
    list_page = platform._list_v2
    monkeypatch.setattr(platform, "_list_v2", lambda fields: list_page(fields | {"offset": "0"}))
    with pytest.raises(ChannelUnknown, match="changed while it was read"):
        our_epay.fetch_statement(DAY)


def test_a_list_has_an_end(platform, our_epay, monkeypatch):
    monkeypatch.setattr(epay, "MOST_PAGES", 2)
    for number in range(200):
        listed(platform, number, f"{TODAY} 12:00:00")
    with pytest.raises(ChannelUnknown, match="too long"):
        our_epay.fetch_statement(DAY)


@pytest.mark.parametrize(
    "facts", [{"pid": "1002"}, {"trade_no": ""}, {"addtime": "yesterday"}, {"endtime": "1,2"}], ids=str
)
def test_a_list_with_an_invalid_order_is_refused(facts, platform, our_epay):
    listed(platform, 1, f"{TODAY} 12:00:00", **facts)
    with pytest.raises(ChannelUnknown, match="invalid"):
        our_epay.fetch_statement(DAY)
