"""Every route of both applications, so that a route or a method that a library adds does not go unnoticed."""

from blueprints import console

SERVICE = {
    "GET": """
        / /docs /docs.md /docs/<path:name> /llms.txt /openapi.json
        /healthz /metrics /readyz
        /addons/paychannel/channel.gatewaya/cityList /addons/paychannel/channel.gatewaya/districtList
        /addons/paychannel/channel.gatewaya/provinceList /addons/paychannel/channel.gatewaya/regionData
        /addons/paychannel/pay/go /addons/paychannel/pay/index /addons/paychannel/pay/index/<order_no>
        /addons/paychannel/pay/language /addons/paychannel/pay/logo/<digest> /addons/paychannel/pay/qr-image
        /addons/paychannel/pay/return /addons/paychannel/pay/signed-in /addons/paychannel/pay/status
        /addons/paychannel/static/<path:filename>
        /MP_verify_<token>.txt /qrcode.php
    """,
    "GET POST": """
        /addons/paychannel/notify/<order_no>
        /api.php /mapi.php /submit.php
        /api/merchant/info /api/merchant/orders
        /api/pay/close /api/pay/create /api/pay/query /api/pay/refund /api/pay/refundquery /api/pay/submit
        /api/transfer/balance /api/transfer/proof /api/transfer/query /api/transfer/submit
    """,
    "POST": """
        /addons/paychannel/pay/choose /addons/paychannel/pay/open /addons/paychannel/pay/paid
        /merchant/balanceQuery /merchant/createOrder /merchant/createRefund /merchant/getPayChannels
        /merchant/orderQueryDetail /merchant/orderQueryList /merchant/refundQueryDetail /merchant/refundQueryList
        /merchant/statementQuery
    """,
}
SANDBOX = {
    "GET": """
        /sandbox /sandbox/balances /sandbox/inbox.json /sandbox/inbox/<int:number> /sandbox/orders/<order_no>
        /sandbox/return
    """,
    "GET POST": "/sandbox/clock /sandbox/sign",
    "POST": """
        /sandbox/accept /sandbox/channel /sandbox/inbox/again /sandbox/inbox/answers /sandbox/inbox/clear
        /sandbox/merchant /sandbox/pay /sandbox/refund
    """,
    "DELETE GET POST": "/sandbox/inbox",
}
CONSOLE = {
    "GET": """
        / /account_balances/ /earnings/ /search/ /sessions/ /statements/
        /batch/ /batch/<int:number>
        /callback/ /callback/<webhook_id>
        /callbacks/resend-all
        /channel/ /channel/<int:channel_id>/picture/<any(wxpay,alipay,bank):method>
        /difference/ /difference/<int:row_id>
        /merchant/ /merchant/<key>/page/logo
        /language/<language_name>
        /ledger/ /ledger/heads.json
        /new-order/<order_no> /order/ /order/<order_no>
        /notifications/
        /payouts/next
        /reconciliation/ /reconciliation/<int:row_id>
        /refund/ /refund/<refund_no>
    """,
    "GET OPTIONS": "/static/<path:filename>",
    "GET POST": """
        /account_balances/<int:channel_id>
        /callbacks/resend
        /channel/new /channel/<int:channel_id> /channel/<int:channel_id>/move
        /channel/<int:channel_id>/members/new /channel/<int:channel_id>/members/<int:member_id>
        /claims/confirm /claims/not-received /claims/upload
        /factor /login /login/code /password
        /merchant/new /merchant/<key> /merchant/<key>/account /merchant/<key>/adjust /merchant/<key>/epay
        /merchant/<key>/page
        /new-order/ /order/<order_no>/refund /order/<order_no>/reveal /order/<order_no>/send
        /notifications/new /notifications/<int:destination_id>
        /operators/ /operators/<int:operator_id>/password
        /payouts/approve /payouts/batch /payouts/reject /payouts/reveal /payouts/sent
        /reconciliation/upload
        /refunds/approve /refunds/reject
    """,
    "POST": """
        /batch/<int:number>/discard /batch/<int:number>/download /batch/<int:number>/file /batch/<int:number>/upload
        /batch/<int:number>/result/upload
        /bills/fetch
        /callback/<webhook_id>/act /order/<order_no>/act /order/<order_no>/note
        /channel/<int:channel_id>/picture/<any(wxpay,alipay,bank):method>/remove
        /channel/<int:channel_id>/picture/<any(wxpay,alipay,bank):method>/upload
        /channel/<int:channel_id>/members/<int:member_id>/place
        /channel/<int:channel_id>/members/<int:member_id>/remove
        /channel/<int:channel_id>/disable /channel/<int:channel_id>/try
        /confirm /difference/<int:row_id>/check /difference/<int:row_id>/explain
        /earnings/export /factor/remove /factor/renew /logout /logout/everywhere
        /ledger/verify
        /merchant/<key>/epay/<any(enable,disable):what> /merchant/<key>/epay/rotate/<any(md5,rsa):kind>
        /merchant/<key>/page/logo/remove /merchant/<key>/page/logo/upload
        /merchant/<key>/reveal /merchant/<key>/rotate/<any(api,callback):kind> /merchant/<key>/test
        /notifications/balances /notifications/<int:destination_id>/delete /notifications/<int:destination_id>/test
        /operators/<int:operator_id>/change
        /reconciliation/<int:row_id>/explain
        /sessions/others /sessions/<int:session_id>/end
        /statements/export /statements/export/all
    """,
}
LISTS = """
    accounts audit batches bills callbacks channels claims differences entries exceptions failed_sign_ins merchants
    orders payouts reconciliations refunds
"""


def routes(app):
    """An application's routes: methods by path."""
    found = {}
    for rule in app.url_map.iter_rules():
        path = rule.rule.replace("int(max=9223372036854775807)", "int").replace(", ", ",")
        found.setdefault(path, set()).update(rule.methods - {"HEAD"})
    return {path: " ".join(sorted(methods)) for path, methods in found.items()}


def listed(table):
    return {path: methods for methods, paths in table.items() for path in paths.split()}


def test_the_service_has_these_routes_and_no_others(app):
    assert routes(app) == listed(SERVICE)


def test_the_demo_has_these_routes_too(demo, app):
    assert routes(app) == listed(SERVICE) | listed(SANDBOX)


def test_the_console_has_these_routes_and_no_others(app):
    lists = {}
    for name in LISTS.split():
        lists |= {f"/{name}/": "GET"} | {f"/{name}/{part}": "POST" for part in ("export", "views", "views/delete")}
    assert routes(console.create()) == listed(CONSOLE) | lists
