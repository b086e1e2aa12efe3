"""Every route of both applications, so that a route that a library adds does not go unnoticed."""

from blueprints import console

API = """
/ GET
/addons/paychannel/channel.gatewaya/cityList GET
/addons/paychannel/channel.gatewaya/districtList GET
/addons/paychannel/channel.gatewaya/provinceList GET
/addons/paychannel/channel.gatewaya/regionData GET
/addons/paychannel/notify/<order_no> GET POST
/addons/paychannel/pay/choose POST
/addons/paychannel/pay/go GET
/addons/paychannel/pay/index GET
/addons/paychannel/pay/index/<order_no> GET
/addons/paychannel/pay/language GET
/addons/paychannel/pay/logo/<digest> GET
/addons/paychannel/pay/open POST
/addons/paychannel/pay/paid POST
/addons/paychannel/pay/qr-image GET
/addons/paychannel/pay/return GET
/addons/paychannel/pay/signed-in GET
/addons/paychannel/pay/status GET
/addons/paychannel/static/<path:filename> GET
/api.php GET POST
/api/merchant/info GET POST
/api/merchant/orders GET POST
/api/pay/close GET POST
/api/pay/create GET POST
/api/pay/query GET POST
/api/pay/refund GET POST
/api/pay/refundquery GET POST
/api/pay/submit GET POST
/api/transfer/balance GET POST
/api/transfer/proof GET POST
/api/transfer/query GET POST
/api/transfer/submit GET POST
/docs GET
/docs.md GET
/docs/<path:name> GET
/healthz GET
/llms.txt GET
/mapi.php GET POST
/merchant/balanceQuery POST
/merchant/createOrder POST
/merchant/getPayChannels POST
/merchant/orderQueryDetail POST
/merchant/orderQueryList POST
/MP_verify_<token>.txt GET
/metrics GET
/openapi.json GET
/readyz GET
/qrcode.php GET
/submit.php GET POST
"""
DEMO = """
/sandbox GET
/sandbox/accept POST
/sandbox/balances GET
/sandbox/channel POST
/sandbox/clock GET POST
/sandbox/inbox DELETE GET POST
/sandbox/inbox.json GET
/sandbox/inbox/<int:number> GET
/sandbox/inbox/again POST
/sandbox/inbox/answers POST
/sandbox/inbox/clear POST
/sandbox/merchant POST
/sandbox/orders/<order_no> GET
/sandbox/pay POST
/sandbox/return GET
/sandbox/sign GET POST
"""
LISTS = (
    *("accounts", "audit", "callbacks", "channels", "claims", "entries", "exceptions", "merchants", "orders"),
    *("failed_sign_ins", "payouts"),
    *("payouts", "reconciliations"),
    *("accounts", "audit", "batches", "callbacks", "channels", "claims", "entries", "exceptions", "merchants"),
    *("failed_sign_ins", "orders", "payouts"),
)
CONSOLE = """
/ GET
/batch/ GET
/batch/<int:number> GET
/batch/<int:number>/discard POST
/batch/<int:number>/file POST
/batch/<int:number>/result/upload POST
/batch/<int:number>/upload POST
/callback/ GET
/callback/<webhook_id> GET
/callback/<webhook_id>/act POST
/channel/ GET
/channel/<int:channel_id> GET POST
/channel/<int:channel_id>/picture/<any(wxpay, alipay, bank):method> GET
/channel/<int:channel_id>/picture/<any(wxpay, alipay, bank):method>/remove POST
/channel/<int:channel_id>/picture/<any(wxpay, alipay, bank):method>/upload POST
/channel/<int:channel_id>/try POST
/channel/new GET POST
/claims/confirm GET POST
/claims/not-received GET POST
/claims/upload GET POST
/confirm POST
/factor GET POST
/factor/remove POST
/factor/renew POST
/language/<language_name> GET
/ledger/ GET
/ledger/heads.json GET
/ledger/verify POST
/login GET POST
/login/code GET POST
/logout POST
/logout/everywhere POST
/merchant/ GET
/merchant/<key> GET POST
/merchant/<key>/account GET POST
/merchant/<key>/adjust GET POST
/merchant/<key>/epay GET POST
/merchant/<key>/epay/<any(enable, disable):what> POST
/merchant/<key>/epay/rotate/<any(md5, rsa):kind> POST
/merchant/<key>/page GET POST
/merchant/<key>/page/logo GET
/merchant/<key>/page/logo/remove POST
/merchant/<key>/page/logo/upload POST
/merchant/<key>/reveal POST
/merchant/<key>/rotate/<any(api, callback):kind> POST
/merchant/<key>/test POST
/merchant/new GET POST
/notifications/ GET
/notifications/<int:destination_id> GET POST
/notifications/<int:destination_id>/delete POST
/notifications/<int:destination_id>/test POST
/notifications/balances POST
/notifications/new GET POST
/new-order/ GET POST
/new-order/<order_no> GET
/operators/ GET POST
/operators/<int:operator_id>/change POST
/operators/<int:operator_id>/password GET POST
/search/ GET
/payouts/approve GET POST
/payouts/batch GET POST
/payouts/next GET
/payouts/reject GET POST
/payouts/reveal GET POST
/payouts/sent GET POST
/reconciliation/ GET
/reconciliation/<int:row_id> GET
/reconciliation/upload GET POST
/sessions/ GET
/sessions/<int:session_id>/end POST
/sessions/others POST
/order/ GET
/order/<order_no> GET
/order/<order_no>/act POST
/order/<order_no>/reveal GET POST
/order/<order_no>/send GET POST
/password GET POST
/payouts/approve GET POST
/payouts/next GET
/payouts/reject GET POST
/payouts/reveal GET POST
/payouts/sent GET POST
/static/<path:filename> GET OPTIONS
/statements/ GET
/statements/export POST
"""


def routes(app):
    """An application's routes: methods by path."""
    found = {}
    for rule in app.url_map.iter_rules():
        found.setdefault(rule.rule.replace("int(max=9223372036854775807)", "int"), set()).update(rule.methods)
    return {f"{path} {' '.join(sorted(methods - {'HEAD'}))}" for path, methods in found.items()}


def test_the_service_has_these_routes_and_no_others(app):
    assert routes(app) == {*API.split("\n")} - {""}


def test_the_demo_has_these_routes_too(demo, app):
    assert routes(app) == {*API.split("\n"), *DEMO.split("\n")} - {""}


def test_the_console_has_these_routes_and_no_others(app):
    parts = (" GET", "export POST", "views POST", "views/delete POST")
    lists = {f"/{name}/{part}" for name in LISTS for part in parts}
    assert routes(console.create()) == {*CONSOLE.split("\n"), *lists} - {""}
