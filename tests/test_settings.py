"""Settings from the environment and config.toml; an invalid one is one clear line and status 2."""

from ipaddress import ip_network
from pathlib import Path

import pytest

from runtime import settings
from runtime.settings import Settings, WrongSetting
from tests.support import ROOT, DemoService

# Settings with which the service does not start, each with a part of the error line.
WRONG = {
    "a password with an @": (
        {"ORDERS_DATABASE_URL": "postgresql://orders:x@my-secret-key@127.0.0.1:1/orders"},
        "database_url: the address can't be read",
    ),
    "a folder that is a file": ({"ORDERS_INSTANCE": "/dev/null"}, "/dev/null"),
    "the home of nobody": ({"ORDERS_INSTANCE": "~nobody-of-that-name/x"}, "ORDERS_INSTANCE"),
    "backups of Postgres": (
        {"ORDERS_DATABASE_URL": "postgresql://orders@127.0.0.1:1/orders", "ORDERS_BACKUP_EVERY": "24"},
        "backup_every",
    ),
    "a key that is none": ({"ORDERS_VAULT_KEY": "my-secret-key"}, "ORDERS_VAULT_KEY"),
}


@pytest.mark.parametrize(("environ", "part"), WRONG.values(), ids=WRONG)
@pytest.mark.usefixtures("slow", "any_database")
def test_a_start_with_a_wrong_setting_ends_with_one_line_and_status_2(tmp_path, environ, part):
    line = DemoService(tmp_path, **environ).refused()
    assert part in line
    assert "my-secret-key" not in line


def test_a_user_without_a_name_is_named_by_its_number(tmp_path, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 4_000_111)
    assert "this is the user 4000111." in settings.denied(tmp_path)


@pytest.mark.parametrize("arguments", [("app.py",), ("-m", "flask", "serve"), ("-m", "flask", "merchant", "list")])
@pytest.mark.usefixtures("slow", "any_database")
def test_a_command_with_a_wrong_setting_ends_like_a_start(tmp_path, arguments):
    service = DemoService(tmp_path, ORDERS_PORT="x")
    service.entry = arguments
    assert service.refused() == "error: ORDERS_PORT: must be a whole number from 1 to 65535"


AMOUNTS, FLAGS = ("1.234", "-1", "1e5", "ten"), ("2", "ja", "none")
BAD_VALUES = {
    "api_prefix": ("api", "/a?b", "/<b>", "/a b", "/#"),
    "backup_every": ("-1", "8785", "daily"),
    "backup_folder": ("~nobody-of-that-name/x",),
    "backup_keep": ("0", "all"),
    "buy_expiry": ("0", "15m", "99999999"),
    "callback_workers": ("0", "257"),
    "claim_expiry": ("-1", "1d", "99999999"),
    "confirm_above": AMOUNTS,
    "database_connections": ("1", "501"),
    "database_url": ("orders.sqlite", "mysql://host/orders"),
    "demo": FLAGS,
    "erase_after_days": ("-1", "30d", "36501"),
    "host": ("http://127.0.0.1", "127.0.0.1/8"),
    "language": ("de", "EN", "zh-CN"),
    "log_format": ("xml",),
    "log_level": ("debug", "5", "LOUD"),
    "metrics_from": ("everybody",),
    "pages_per_address": ("0", "x"),
    "port": ("0", "-1", "65536", " 80", "8_0", "８０", "8.0", "9" * 30),
    "private_callbacks": FLAGS,
    "private_channels": FLAGS,
    "refused_per_minute": ("0", "x"),
    "requests_per_second": ("0", "1.5"),
    "second_factor_required": ("maybe",),
    "second_operator_above": AMOUNTS,
    "short_searches": ("0", "x"),
    "site_url": (
        *("pay.example.com", "ftp://a.example", "https://", "https://a.example/path", "https://a.example?x=1"),
        *("https://a.example#x", "https://a.example:port", "http://[bad", "http://a b"),
    ),
    "threads": ("0", "257", "many"),
    "trusted_proxies": ("-1", "10"),
    "verify_every": ("-1", "8785", "daily"),
}


@pytest.mark.parametrize("name", BAD_VALUES)
def test_an_invalid_value_is_refused_and_named(tmp_path, name):
    for text in BAD_VALUES[name]:
        with pytest.raises(WrongSetting, match=f"ORDERS_{name.upper()}") as refused:
            settings.load({"ORDERS_INSTANCE": str(tmp_path), f"ORDERS_{name.upper()}": text})
        assert "\n" not in str(refused.value), text


@pytest.mark.parametrize("in_file", [True, False])
def test_a_password_in_a_refused_value_is_not_printed(tmp_path, in_file):
    text = "mysql://orders:c4n4ry@db/orders"
    accept_any_text = {"instance", "vault_key", "backup_folder", "issuer_name", "issuer_details"}
    for name in Settings.__dataclass_fields__.keys() - accept_any_text:
        given = {"ORDERS_INSTANCE": str(tmp_path)} | ({} if in_file else {f"ORDERS_{name.upper()}": text})
        if in_file:
            (tmp_path / "config.toml").write_text(f'{name} = "{text}"\n')
        with pytest.raises(WrongSetting, match=name if in_file else name.upper()) as refused:
            settings.load(given)
        assert "c4n4ry" not in str(refused.value), name


GOOD_VALUES = [
    ("database_url", "postgresql://orders:p%40ss@db.internal/orders", "postgresql://orders:p%40ss@db.internal/orders"),
    ("database_connections", "2", 2),
    ("host", "0.0.0.0", "0.0.0.0"),
    ("port", "80", 80),
    ("site_url", "https://pay.example.com/", "https://pay.example.com"),
    ("api_prefix", "/api/v1/", "/api/v1"),
    ("demo", "yes", True),
    ("demo", "0", False),
    ("language", "zh", "zh"),
    ("vault_key", "key", "key"),
    ("threads", "256", 256),
    ("waiting", "1", 1),
    ("one_core", "0", False),
    ("confirm_above", "50000.50", 5_000_050),
    ("second_factor_required", "1", True),
    ("second_operator_above", "50000.50", 5_000_050),
    ("requests_per_address", "5", 5),
    ("private_callbacks", "on", True),
    ("channel_workers", "1", 1),
    ("backup_folder", "/var/backups/tillbook", Path("/var/backups/tillbook")),
    ("verify_every", "0", 0),
    ("issuer_name", "示例支付有限公司", "示例支付有限公司"),
    ("issuer_details", "1 Example Road | +86 21 5555 0100", "1 Example Road | +86 21 5555 0100"),
    ("log_level", "DEBUG", "DEBUG"),
    ("log_format", "json", "json"),
    ("access_log", "1", True),
    ("metrics_from", "10.0.0.0/8, ::1", (ip_network("10.0.0.0/8"), ip_network("::1"))),
    ("metrics_from", "none", ()),
]


def test_a_setting_is_read_from_the_environment_and_from_the_file(tmp_path):
    for name, text, value in GOOD_VALUES:
        (tmp_path / "config.toml").write_text("", "utf-8")
        here = {"ORDERS_INSTANCE": str(tmp_path)}
        assert getattr(settings.load(here | {f"ORDERS_{name.upper()}": text}), name) == value, name
        (tmp_path / "config.toml").write_text(f'{name} = "{text}"\n', "utf-8")
        assert getattr(settings.load(here), name) == value, name


def test_every_setting_is_tested_here():
    tried = {*BAD_VALUES, *(name for name, *_ in GOOD_VALUES)}
    assert Settings.__dataclass_fields__.keys() == tried | {"instance"}


def test_numbers_and_flags_in_the_file_may_be_written_as_such_after_a_byte_order_mark(tmp_path):
    (tmp_path / "config.toml").write_text("port = 81\ndemo = true\nprivate_callbacks = false\n", "utf-8-sig")
    read = settings.load({"ORDERS_INSTANCE": str(tmp_path)})
    assert (read.port, read.demo, read.private_callbacks) == (81, True, False)


def test_the_environment_overrides_the_file_and_an_empty_variable_counts_as_absent(tmp_path):
    (tmp_path / "config.toml").write_text('port = 81\nlanguage = "zh"\n')
    read = settings.load({"ORDERS_INSTANCE": str(tmp_path), "ORDERS_PORT": "82", "ORDERS_LANGUAGE": ""})
    assert (read.port, read.language) == (82, "zh")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("threads = 0", "threads"),
        ("prot = 81", "did you mean 'port'"),
        ("[server]\nport = 81", "server"),
        ("port = ", "config.toml"),
        ("port = true", "port"),
        ("port = 80.5", "port"),
        ("host = ['127.0.0.1']", "host"),
        ("host = {name = 'x'}", "host"),
        ("demo = 2026-01-01", "demo"),
        ("instance = '/tmp'", "instance"),
        ("host = '\udcff'", "config.toml"),
    ],
)
def test_an_invalid_file_is_refused_in_one_line(tmp_path, text, word):
    (tmp_path / "config.toml").write_text(text, "utf-8", "surrogateescape")
    with pytest.raises(WrongSetting, match=word) as refused:
        settings.load({"ORDERS_INSTANCE": str(tmp_path)})
    assert "config.toml" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_an_unknown_variable_causes_a_warning(tmp_path, capsys):
    settings.load({"ORDERS_INSTANCE": str(tmp_path), "ORDERS_PROT": "81", "ORDERS_QQQ": "1", "OTHER": "1"})
    assert capsys.readouterr().err.splitlines() == [
        "warning: unknown setting ORDERS_PROT, did you mean ORDERS_PORT?",
        "warning: unknown setting ORDERS_QQQ",
    ]


def test_the_defaults_are_the_documented_ones():
    chosen = Settings()
    assert (chosen.host, chosen.port, chosen.public_url) == ("127.0.0.1", 8000, "http://127.0.0.1:8000")
    assert (chosen.api_prefix, chosen.demo, chosen.language) == ("", False, "en")
    assert (chosen.buy_expiry, chosen.requests_per_second, chosen.refused_per_minute) == (900, 100, 200)
    assert (chosen.backup_every, chosen.backup_keep, chosen.verify_every) == (0, 14, 24)
    assert chosen.instance == ROOT / "instance"
    assert chosen.backups == ROOT / "instance" / "backups"


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ({"host": "10.1.2.3", "port": 81}, "http://10.1.2.3:81"),
        ({"host": "::1", "port": 81}, "http://[::1]:81"),
        ({"site_url": "https://pay.example.com"}, "https://pay.example.com"),
    ],
)
def test_the_public_address_follows_from_host_and_port_unless_it_is_set(given, url):
    assert Settings(**given).public_url == url


@pytest.mark.parametrize("settings_of_app", [{"api_prefix": "/api", "site_url": "https://pay.example.com"}])
def test_only_the_merchant_endpoints_have_the_set_prefix(api, http):
    assert api.listed().code == 40404
    api.send = lambda method, path, body, headers: http(method, f"/api{path}", body, headers)
    pay_url = api.buy().data["pay_url"]
    assert pay_url.startswith("https://pay.example.com/addons/paychannel/pay/index?order_no=")
    assert http("GET", pay_url.removeprefix("https://pay.example.com")).status == 200


@pytest.mark.parametrize("settings_of_app", [{"language": "zh"}])
def test_messages_are_in_the_set_language_unless_the_caller_names_one(api):
    assert not api.detail(order_no="1").json["msg"].isascii()
    english = api.call("orderQueryDetail", {"order_no": "1"}, {"Accept-Language": "en"})
    assert english.json["msg"] == "order not found"


def test_a_link_to_a_missing_file_is_refused_because_its_settings_would_be_missing(tmp_path):
    (tmp_path / "config.toml").symlink_to(tmp_path / "elsewhere.toml")
    with pytest.raises(WrongSetting, match=r"the link leads to .*elsewhere.toml, which does not exist"):
        settings.load({"ORDERS_INSTANCE": str(tmp_path)})
