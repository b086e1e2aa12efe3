"""Bills as WeChat Pay and Alipay write them, from their lists of columns, with the traps of their formats."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass

WECHAT_TRADE = (
    "交易时间,公众账号ID,商户号,特约商户号,设备号,微信订单号,商户订单号,用户标识,交易类型,交易状态,付款银行,货币种类,应结订单金额,"
    "代金券金额,微信退款单号,商户退款单号,退款金额,充值券退款金额,退款类型,退款状态,商品名称,商户数据包,手续费,费率,订单金额,"
    "申请退款金额,费率备注"
)
WECHAT_TRADE_SUMS = "总交易单数,应结订单总金额,退款总金额,充值券退款总金额,手续费总金额,订单总金额,申请退款总金额"
WECHAT_FLOW = (
    "记账时间,微信支付业务单号,资金流水单号,业务名称,业务类型,收支类型,收支金额(元),账户结余(元),资金变更提交申请人,备注,"
    "业务凭证号"
)
WECHAT_FLOW_SUMS = "资金流水总笔数,收入笔数,收入金额,支出笔数,支出金额"
ALIPAY_TRADE = (
    "支付宝交易号,商户订单号,业务类型,商品名称,创建时间,完成时间,门店编号,门店名称,操作员,终端号,对方账户,订单金额（元）,"
    "商家实收（元）,支付宝红包（元）,集分宝（元）,支付宝优惠（元）,商家优惠（元）,券核销金额（元）,券名称,商家红包消费金额（元）,"
    "卡消费金额（元）,退款批次号/请求号,服务费（元）,分润（元）,备注"
)
ALIPAY_FLOW = (
    "账务流水号,业务流水号,商户订单号,商品名称,发生时间,对方账号,收入金额（+元）,支出金额（-元）,账户余额（元）,"
    "交易渠道,业务类型,备注"
)
RULE = "-" * 41


@dataclass(frozen=True)
class Row:
    """A payment, or with `refund_no` a refund. Money in fen, without signs; `time` such as 2026-05-01 12:00:00.

    `fee` is the cost of a payment, or what a refund returns of it. `coupon` is the part of the amount that the merchant
    gave as a discount. `state` is the status of a payment (SUCCESS, REVOKED) or of a refund at WeChat (SUCCESS,
    PROCESSING, FAIL, CHANGE).
    """

    order_no: str
    reference: str
    amount: int
    time: str
    fee: int = 0
    refund_no: str = ""
    refund_id: str = ""
    state: str = "SUCCESS"
    goods: str = "Order"
    coupon: int = 0
    note: str = ""


@dataclass(frozen=True)
class Move:
    """One line of a flow of funds: the change and the balance after it, in fen."""

    time: str
    change: int
    balance: int
    kind: str = "交易"
    goods: str = "Order"


def flow_of(rows: Iterable[Row], balance: int = 0) -> list[Move]:
    """The flow of an account with these rows, oldest first: each amount, and its fee in the same second."""
    moves = []
    for row in sorted(rows, key=lambda row: row.time):
        sign, kind = (-1, "退款") if row.refund_no else (1, "交易")
        for change, of in ((sign * (row.amount - row.coupon), kind), (-sign * row.fee, "扣除交易手续费")):
            if change:
                balance += change
                moves.append(Move(row.time, change, balance, of, row.goods))
    return moves


def yuan(fen: int, *, grouped: bool = False) -> str:
    """An amount with two decimals; with `grouped` in quotes and with commas between thousands."""
    whole = f"{'-' if fen < 0 else ''}{abs(fen) // 100:{',' if grouped else ''}}.{abs(fen) % 100:02d}"
    return f'"{whole}"' if "," in whole else whole


def wechat_tradebill(
    rows: Iterable[Row],
    *,
    bom: bool = True,
    charset: str = "utf-8",
    marked_header: bool = False,
    padding: str = "",
    end: str = "\r\n",
) -> bytes:
    """WeChat Pay's 交易账单 (ALL), unpacked: a backtick before each value, and two lines of sums.

    `marked_header`: a backtick before each name, too; `padding` is behind each value.
    """
    rows = list(rows)
    lines = []
    for row in rows:
        back = bool(row.refund_no)
        fee = -row.fee if back else row.fee
        paid = {"应结订单金额": yuan(row.amount - row.coupon), "订单金额": yuan(row.amount), "交易状态": row.state}
        paid |= {"代金券金额": yuan(row.coupon), "退款金额": "0.00", "申请退款金额": "0.00"}
        refunded = {"退款金额": yuan(row.amount - row.coupon), "申请退款金额": yuan(row.amount), "交易状态": "REFUND"}
        refunded |= {"应结订单金额": "0.00", "订单金额": "0.00", "代金券金额": "0.00"}
        refunded |= {"退款类型": "ORIGINAL", "退款状态": row.state}
        facts = {
            "交易时间": row.time,
            "公众账号ID": "wx0123456789abcdef",
            "商户号": "1900000109",
            "特约商户号": "0",
            "微信订单号": row.reference,
            "商户订单号": row.order_no,
            "用户标识": "oUpF8uMuAJO_M2pxb1Q9zNjWeS6o",
            "交易类型": "NATIVE",
            "付款银行": "OTHERS",
            "货币种类": "CNY",
            "微信退款单号": row.refund_id or "0",
            "商户退款单号": row.refund_no or "0",
            "充值券退款金额": "0.00",
            "商品名称": row.goods,
            "手续费": f"{yuan(fee)}000",
            "费率": "0.60%",
            "费率备注": row.note,
            **(refunded if back else paid),
        }
        lines.append(",".join(f"`{facts.get(name, '')}{padding}" for name in WECHAT_TRADE.split(",")))
    gone, came = [row for row in rows if row.refund_no], [row for row in rows if not row.refund_no]
    sums = [
        *(str(len(rows)), yuan(sum(row.amount - row.coupon for row in came))),
        *(yuan(sum(row.amount - row.coupon for row in gone)), "0.00"),
        f"{yuan(sum(row.fee for row in came) - sum(row.fee for row in gone))}000",
        *(yuan(sum(row.amount for row in came)), yuan(sum(row.amount for row in gone))),
    ]
    header = ",".join(f"`{name}" for name in WECHAT_TRADE.split(",")) if marked_header else WECHAT_TRADE
    text = end.join((header, *lines, WECHAT_TRADE_SUMS, ",".join(f"`{each}" for each in sums), ""))
    return (("\ufeff" if bom else "") + text).encode(charset)


def wechat_fundflow(moves: Iterable[Move], *, newest_first: bool = False, bom: bool = True) -> bytes:
    """WeChat Pay's 资金账单 of the basic account, unpacked."""
    moves = list(moves)
    lines = []
    for at, move in enumerate(moves):
        facts = [
            *(move.time, f"4200000{at:021d}", f"1900009231{at:018d}", move.kind, move.kind),
            *("收入" if move.change > 0 else "支出", yuan(abs(move.change)), yuan(move.balance), "system"),
            *(move.goods, f"REF{at}"),
        ]
        lines.append(",".join(f"`{fact}" for fact in facts))
    gains, costs = (
        [each.change for each in moves if each.change > 0],
        [each.change for each in moves if each.change < 0],
    )
    sums = [len(moves), len(gains), yuan(sum(gains)), len(costs), yuan(-sum(costs))]
    body = lines[::-1] if newest_first else lines
    text = "\r\n".join((WECHAT_FLOW, *body, WECHAT_FLOW_SUMS, ",".join(f"`{each}" for each in sums), ""))
    return (("\ufeff" if bom else "") + text).encode()


def alipay_trade(
    rows: Iterable[Row], *, padding: str = "\t", grouped: bool = False, day: str = "20260501", kind: str = ""
) -> bytes:
    """Alipay's 业务明细 in its ZIP archive, with the file of sums before it.

    `padding` is behind each text; `grouped`: commas between thousands; `kind`: the 业务类型 of all lines.
    """
    lines = []
    for row in rows:
        sign = -1 if row.refund_no else 1
        facts = {
            "支付宝交易号": row.reference,
            "商户订单号": row.order_no,
            "业务类型": kind or ("退款" if row.refund_no else "交易"),
            "商品名称": row.goods,
            "创建时间": row.time,
            "完成时间": row.time,
            "对方账户": "zha***@example.com",
            "退款批次号/请求号": row.refund_no,
            "备注": row.note,
        }
        amounts = dict.fromkeys((name for name in ALIPAY_TRADE.split(",") if "（元）" in name), 0)
        amounts |= {"订单金额（元）": sign * row.amount, "商家实收（元）": sign * (row.amount - row.coupon)}
        amounts |= {"商家优惠（元）": sign * row.coupon, "服务费（元）": -sign * row.fee}
        texts = {name: f"{fact}{padding}" for name, fact in facts.items()}
        cells = texts | {name: yuan(fen, grouped=grouped) for name, fen in amounts.items()}
        lines.append(",".join(cells.get(name, "") for name in ALIPAY_TRADE.split(",")))
    return _alipay_archive("业务明细", ALIPAY_TRADE, lines, day)


def alipay_flow(moves: Iterable[Move], *, newest_first: bool = True, day: str = "20260501") -> bytes:
    """Alipay's 账务明细 in its ZIP archive."""
    lines = []
    for at, move in enumerate(moves):
        gain, cost = yuan(max(move.change, 0)), yuan(min(move.change, 0))
        texts = [f"{at:014d}\t", f"2026050122{at:018d}\t", f"{at}\t", move.goods, move.time, "zha***@example.com"]
        lines.append(",".join([*texts, gain, cost, yuan(move.balance), "支付宝", move.kind, ""]))
    return _alipay_archive("账务明细", ALIPAY_FLOW, lines[::-1] if newest_first else lines, day)


def _alipay_archive(title: str, header: str, lines: list[str], day: str) -> bytes:
    begin = [f"#支付宝{title}查询", "#账号：[20880000000000010156]", f"#{RULE}{title}列表{RULE}"]
    end = [
        f"#{RULE}{title}列表结束{RULE}",
        f"#交易合计：{len(lines)}笔，商家实收共0.00元",
        "#导出时间：[2026年05月02日]",
    ]
    text = "\r\n".join((*begin, header, *lines, *end, ""))
    sums = f"#支付宝{title}汇总查询\r\n门店编号,门店名称,交易订单总笔数\r\n合计,,{len(lines)}\r\n#{title}汇总结束\r\n"
    name = f"20880000000000010156_{day}_{title}"
    return archive({f"{name}(汇总).csv": sums.encode("gb18030"), f"{name}.csv": text.encode("gb18030")})


def archive(files: dict[str, bytes], charset: str = "gb18030", method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A ZIP archive whose names are in this charset, without the mark for UTF-8."""
    made, names = io.BytesIO(), {}
    with zipfile.ZipFile(made, "w", method) as packed:
        for at, (name, content) in enumerate(files.items()):
            encoded = name.encode(charset)
            stand_in = f"stand-in-{at}".ljust(len(encoded), "_")  # zipfile writes ASCII unmarked
            packed.writestr(stand_in, content)
            names[stand_in.encode()] = encoded
    whole = made.getvalue()
    for stand_in, encoded in names.items():
        whole = whole.replace(stand_in, encoded)
    return whole
