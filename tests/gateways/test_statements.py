"""Each upstream's own statement, in the format of its download, against the orders: `tillbook reconcile`."""

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from tests.upstreams.alipay import Alipay
from tests.upstreams.epay import EpayPlatform
from tests.upstreams.wechatpay import WechatPay

NOW = datetime.now(timezone(timedelta(hours=8)))
STAMP = f"{NOW:%Y-%m-%d %H:%M:%S}"
TOMORROW = f"{NOW + timedelta(days=1):%Y-%m-%d}"  # a test may run at midnight

WECHAT_HEADER = (
    "交易时间,公众账号ID,商户号,特约商户号,设备号,微信订单号,商户订单号,用户标识,交易类型,交易状态,付款银行,货币种类,应结订单金额,"
    "代金券金额,微信退款单号,商户退款单号,退款金额,充值券退款金额,退款类型,退款状态,商品名称,商户数据包,手续费,费率,订单金额,"
    "申请退款金额,费率备注"
)
ALIPAY_HEADER = (
    "支付宝交易号,商户订单号,业务类型,商品名称,创建时间,完成时间,门店编号,门店名称,操作员,终端号,对方账户,订单金额（元）,"
    "商家实收（元）,支付宝红包（元）,集分宝（元）,支付宝优惠（元）,商家优惠（元）,券核销金额（元）,券名称,商家红包消费金额（元）,"
    "卡消费金额（元）,退款批次号/请求号,服务费（元）,分润（元）,备注"
)


def _row(header, **facts):
    """A line with values in the order of the header."""
    return [facts.get(name, "") for name in header.split(",")]


def _wechat(order_no, reference, amount, refunded=""):
    """WeChat Pay's 交易账单: a backtick before each value, and sums at the end."""
    facts = {"交易时间": STAMP, "商户订单号": order_no, "微信订单号": reference, "商品名称": "Order, with a comma"}
    facts |= {"交易状态": "REFUND" if refunded else "SUCCESS", "手续费": "0.60000", "费率": "0.60%", "货币种类": "CNY"}
    facts |= {"订单金额": "0.00" if refunded else amount, "申请退款金额": refunded or "0.00"}
    line = ",".join(f"`{value}" for value in _row(WECHAT_HEADER, **facts))
    sums = "总交易单数,应结订单总金额,退款总金额,充值券退款总金额,手续费总金额,订单总金额,申请退款总金额"
    return f"\ufeff{WECHAT_HEADER}\n{line}\n{sums}\n`1,`100.00,`0.00,`0.00,`0.60,`100.00,`0.00\n".encode()


def _alipay(order_no, reference, amount, refunded=""):
    """Alipay's 业务明细: GBK, remarks before and after, tabs after values."""
    facts = {"支付宝交易号": reference, "商户订单号": order_no, "完成时间": STAMP, "服务费（元）": "-0.60"}
    facts |= {"业务类型": "退款" if refunded else "交易", "订单金额（元）": f"-{refunded}" if refunded else amount}
    line = ",".join(f"{value}\t" for value in _row(ALIPAY_HEADER, **facts))
    begin = "#支付宝业务明细查询\n#账号：[20880000000000010156]\n#-----------业务明细列表-----------"
    end = "#-----------业务明细列表结束-----------\n#交易合计：1笔"
    return f"{begin}\n{ALIPAY_HEADER}\n{line}\n{end}\n".encode("gb18030")


def _epay(order_no, reference, amount, refunded=""):
    """An epay platform's order list; platforms differ."""
    header = "系统订单号,商户订单号,商品名称,商品金额,支付状态,完成时间"
    status = "已退款" if refunded else "已支付"
    return f"{header}\n{reference},{order_no},Order,{amount},{status},{STAMP}\n".encode()


UPSTREAMS = {
    "wechatpay": (WechatPay, "key", "wxpay", _wechat),
    "alipay": (Alipay, "key", "alipay", _alipay),
    "epay": (EpayPlatform, "1", "alipay", _epay),
}


@pytest.fixture(params=UPSTREAMS)
def deposited(request, web_server, add_channel, api, later, order_details, tmp_path):
    """A paid deposit of 100 yuan: its channel, its number, and `statement(...)`, which writes the file."""
    make, kind, method, write = UPSTREAMS[request.param]
    upstream = make(web_server)
    channel = add_channel(request.param, upstream.config(kind))
    order_no = api.buy(channel=channel, paychannel_paymethod=method).data["order_no"]
    upstream.pay(order_no)
    later(60)
    file = tmp_path / "statement.csv"

    def statement(amount="100.00", **more):
        file.write_bytes(write(order_no, order_details(order_no)["channel_reference"], amount, **more))
        return str(file)

    return channel, order_no, statement


def test_a_statement_that_agrees_has_no_difference(deposited, flask):
    channel, _, statement = deposited
    told = flask("reconcile", channel, statement(), "--until", TOMORROW).output
    assert "No differences" in told
    assert "100.00 in the statement, 100.00 in the orders" in told


@pytest.mark.parametrize(
    ("there", "kind"), [({"amount": "99.00"}, "amount"), ({"refunded": "100.00"}, "status")], ids=["amount", "refund"]
)
def test_another_amount_and_a_refund_are_found(there, kind, deposited, flask):
    channel, order_no, statement = deposited
    told = flask("reconcile", channel, statement(**there), fails=True)
    assert told.exit_code == 3
    [difference] = [line.split() for line in told.output.splitlines() if order_no in line]
    assert difference[0] == kind


def test_a_column_that_a_new_export_has_for_the_currency_is_not_ignored(deposited, refuses):
    channel, order_no, statement = deposited
    file = Path(statement())
    charset = "gb18030" if "支付宝".encode("gb18030") in file.read_bytes() else "utf-8"
    text = file.read_text(charset).replace("商户订单号", "结算币种,商户订单号", 1)
    value = "USD,`" if f"`{order_no}" in text else "USD,"
    file.write_text(text.replace(order_no, value + order_no, 1), charset)
    assert "Column 结算币种 looks like a currency" in refuses("reconcile", channel, file)
