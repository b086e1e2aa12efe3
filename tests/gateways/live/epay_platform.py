"""A real epay platform: a checkout of monlor/Epay, served by PHP on a MariaDB of its own, all on this machine.

`python -m tests.gateways.live.epay_platform FOLDER` fails with one line if something is missing to run it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import requests

from tests.support import free_port, until
from tests.upstreams.loopback import key_pair

HERE = Path(__file__).parent
# The folder of Debian's mariadbd, which is not in users' paths.
PATH = f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin"
NEEDED = {
    "php": "php-cli php-mysql php-curl php-gd php-mbstring",
    "mariadbd": "mariadb-server",
    "mariadb-install-db": "mariadb-server",
    "mariadb": "mariadb-client",
}
EXTENSIONS = {"pdo_mysql", "curl", "gd", "mbstring", "openssl"}
PART_OF_IT = ("api.php", "mapi.php", "submit.php", "pay.php", "install/install.sql", "includes/lib/ApiHelper.php")
PID, KEY, SYSTEM_KEY, CRON_KEY = "1001", "k" * 32, "s" * 32, "654321"
CONFIG = {  # each test begins with it
    "user_transfer": "1",
    "transfer_alipay": "1",
    "transfer_rate": "0.5",
    "settle_type": "0",
    "pay_verify": "0",
    "pay_verify_type": "0",
    "pay_iplimit": "0",
    "pay_payaddstart": "0",
    "loopback_submitted": "0",
    "loopback_queried": "1",
    "user_refund": "1",
    "loopback_refund_error": "",
}
DATABASE = (
    "--skip-log-bin",
    "--skip-name-resolve",
    "--innodb-buffer-pool-size=32M",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-fast-shutdown=2",
)


def missing(folder: str) -> str:
    """Return one line about what is missing to run the platform in this folder; "" if nothing is."""
    if not folder:
        return "Say where your checkout of github.com/monlor/Epay is: make test-epay-platform FOLDER=/path/to/Epay"
    absent = [name for name in PART_OF_IT if not (Path(folder) / name).is_file()]
    if absent:
        return f"{folder} is no checkout of github.com/monlor/Epay: it has no {absent[0]}"
    programs = [name for name in NEEDED if not shutil.which(name, path=PATH)]
    if programs:
        return f"{programs[0]} is not installed (Debian: {NEEDED[programs[0]]})"
    listed = subprocess.run(["php", "-m"], capture_output=True, text=True, check=True).stdout.lower().split()
    extensions = sorted(EXTENSIONS - set(listed))
    return f"PHP has no {extensions[0]} (Debian: {NEEDED['php']})" if extensions else ""


def _bare(pem: str) -> str:
    """A key as the platform stores it."""
    return "".join(line for line in pem.splitlines() if not line.startswith("-----"))


class RealPlatform:
    """The platform with one merchant, PID, and a payment plugin whose payments and transfers are made by the tests."""

    def __init__(self, checkout: Path):
        self.folder = Path(tempfile.mkdtemp(prefix="epay-platform-"))
        self._processes: list[subprocess.Popen[bytes]] = []
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.headers["User-Agent"] = "Mozilla/5.0 (X11; Linux x86_64) Chrome/140.0"  # it refuses programs
        self.merchant_private, merchant_public = key_pair("epay merchant")
        self._merchant_public = _bare(merchant_public)
        # A watchdog that outlives a killed pytest: it ends the processes and removes the folder once this process has
        # ended.
        self._watch = subprocess.Popen(
            [
                "sh",
                "-c",
                f"trap '' INT; while read group; do g=\"$g -$group\"; done; kill -9 $g; rm -rf '{self.folder}'",
            ],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            text=True,
        )
        try:
            self._install(checkout)
        except BaseException:
            self.remove()
            raise

    def remove(self) -> None:
        """End its processes and remove its folder."""
        if self._watch.poll() is None:
            self._watch.communicate()
            for process in self._processes:
                process.wait()

    # --- setup

    def _install(self, checkout: Path) -> None:
        self.site = self.folder / "site"
        shutil.copytree(checkout, self.site, ignore=shutil.ignore_patterns(".git"))
        port = self._start_database()
        self._load(port)
        self._write_files(port)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._start("php", *self._php_settings(), "-S", f"127.0.0.1:{self.port}", "-t", self.site, HERE / "router.php")
        until(self._made_its_keys)
        [[self.public]] = self.sql("SELECT v FROM pre_config WHERE k = 'public_key'")

    def _start(self, *command: Any) -> subprocess.Popen[bytes]:
        """Start a process, in a group of its own that ends with the tests."""
        environ = {"PATH": PATH, "RUN": str(self.folder), "PHP_CLI_SERVER_WORKERS": "6"}
        with (self.folder / "log").open("ab") as log:
            words = [str(word) for word in command]
            process = subprocess.Popen(words, cwd=self.folder, env=environ, stdout=log, stderr=log, process_group=0)
        self._processes.append(process)
        print(process.pid, file=self._watch.stdin, flush=True)
        return process

    def _start_database(self) -> int:
        data, socket, port = self.folder / "data", self.folder / "socket", free_port()
        who = ["--user=root"] if os.getuid() == 0 else []
        install = ["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--skip-test-db", *who]
        install.append("--auth-root-authentication-method=normal")
        subprocess.run(install, cwd=self.folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        place = (f"--datadir={data}", f"--socket={socket}", f"--port={port}", "--bind-address=127.0.0.1")
        server = self._start("mariadbd", "--no-defaults", *place, *DATABASE, *who)
        until(lambda: self._answers(server), 60)
        return port

    def _answers(self, server: subprocess.Popen[bytes]) -> bool:
        assert server.poll() is None, (self.folder / "log").read_text(errors="replace")
        return self._client("SELECT 1", check=False).returncode == 0

    def _client(self, statements: str, database: str = "", check: bool = True) -> subprocess.CompletedProcess[str]:
        command = ["mariadb", "--no-defaults", "--user=root", f"--socket={self.folder / 'socket'}", "--batch"]
        command += ["--skip-column-names", "--default-character-set=utf8mb4", *([database] if database else [])]
        done = subprocess.run(command, input=statements, capture_output=True, text=True)
        assert not check or done.returncode == 0, done.stderr
        return done

    def _load(self, port: int) -> None:
        self._client(
            "CREATE DATABASE epay CHARACTER SET utf8mb4;"
            "CREATE USER 'epay'@'127.0.0.1' IDENTIFIED BY 'epay'; GRANT ALL ON epay.* TO 'epay'@'127.0.0.1'"
        )
        self.sql("SET sql_mode = '';" + (self.site / "install/install.sql").read_text("utf-8"))
        channels = ", ".join(f"({kind}, 'loopback', 'loopback', 99.00, 1)" for kind in (1, 2))
        self.sql(
            f"REPLACE INTO pre_config VALUES ('syskey', '{SYSTEM_KEY}'), ('cronkey', '{CRON_KEY}');"
            f"INSERT INTO pre_channel (type, plugin, name, rate, status) VALUES {channels};"
            f"INSERT INTO pre_user (uid, `key`, money, status, transfer) VALUES ({PID}, '', 0, 1, 1)"
        )
        self.reset()

    def _write_files(self, port: int) -> None:
        """Its config, our plugin, the lock of its installer; an autoloader for a checkout without its libraries."""
        place = {"host": "127.0.0.1", "port": port, "user": "epay", "pwd": "epay", "dbname": "epay", "dbqz": "pay"}
        rows = ", ".join(f"'{name}' => '{value}'" for name, value in place.items())
        (self.site / "config.php").write_text(f"<?php\n$dbconfig = [{rows}];\n")
        (self.site / "install" / "install.lock").touch()
        plugin = self.site / "plugins" / "loopback"
        plugin.mkdir()
        shutil.copy(HERE / "loopback_plugin.php", plugin)
        libraries = self.site / "includes" / "vendor" / "autoload.php"  # of payment companies, which no test calls
        if not libraries.exists():
            libraries.parent.mkdir(exist_ok=True)
            libraries.write_text("<?php\n")

    def _php_settings(self) -> list[str]:
        sessions = self.folder / "sessions"
        sessions.mkdir()
        settings = {"display_errors": "0", "session.save_path": str(sessions), "opcache.enable_cli": "1"}
        return [part for name, value in settings.items() for part in ("-d", f"{name}={value}")]

    def _made_its_keys(self) -> bool:
        """Send its first request, on which it creates its key pair. Returns False if it is not up yet."""
        try:
            self._session.get(f"{self.url}/api.php", timeout=20)
        except requests.ConnectionError:
            return False
        return bool(self.sql("SELECT v FROM pre_config WHERE k = 'public_key'"))

    # --- its database

    def sql(self, statements: str) -> list[list[str]]:
        """Run statements in its database, with tables named `pre_...` as in its own code. Returns the rows."""
        done = self._client(statements.replace("pre_", "pay_"), "epay")
        return [line.split("\t") for line in done.stdout.splitlines()]

    def set(self, **config: str) -> None:
        """Change its configuration."""
        rows = ", ".join(f"('{name}', '{value}')" for name, value in config.items())
        self.sql(f"REPLACE INTO pre_config VALUES {rows}; UPDATE pre_cache SET v = '' WHERE k = 'config'")

    def reset(self) -> None:
        """Delete all orders and restore the configuration."""
        tables = ("order", "refundorder", "transfer", "record")
        self.sql(
            "".join(f"TRUNCATE pre_{table};" for table in tables)
            + "UPDATE pre_type SET status = 1 WHERE name IN ('alipay', 'wxpay');"
            + f"UPDATE pre_user SET money = 100000, refund = 1, `key` = '{KEY}', publickey = '{self._merchant_public}'"
        )
        self.set(**CONFIG)
        self.set_clock(0)
        self.spoils("")

    def set_clock(self, ahead: float) -> None:
        """Set its clock this number of seconds ahead."""
        (self.folder / "ahead").write_text(str(round(ahead)))

    def spoils(self, path: str) -> None:
        """Process requests to this path, but respond with a page of a proxy; "" for none."""
        (self.folder / "spoiled").write_text(path)

    def config(self, version: str, **more: str) -> dict[str, str]:
        """The config of a channel for its merchant."""
        keys = {"key": KEY} if version == "1" else {"private_key": self.merchant_private, "platform_key": self.public}
        return {"base_url": self.url, "version": version, "pid": PID, **keys, **more}

    def order(self, number: str, column: str) -> str:
        """Return a column of an order in its database."""
        [[value]] = self.sql(f"SELECT {column} FROM pre_order WHERE out_trade_no = '{number}'")
        return value

    def transfers(self) -> list[dict[str, str]]:
        """Return its payouts."""
        columns = ("out_biz_no", "biz_no", "account", "username", "money", "costmoney", "status")
        rows = self.sql(f"SELECT {', '.join(columns)} FROM pre_transfer")
        return [dict(zip(columns, row, strict=True)) for row in rows]

    def refunds(self) -> list[dict[str, str]]:
        """Return its refunds."""
        columns = ("refund_no", "out_refund_no", "trade_no", "money", "status")
        rows = self.sql(f"SELECT {', '.join(columns)} FROM pre_refundorder")
        return [dict(zip(columns, row, strict=True)) for row in rows]

    def money(self) -> str:
        """Return the merchant's balance at the platform."""
        [[money]] = self.sql(f"SELECT money FROM pre_user WHERE uid = {PID}")
        return money

    # --- requests

    def get(self, path: str, **more: Any) -> requests.Response:
        """Request a path of the platform, or a full address, as a browser."""
        return self._session.get(path if path.startswith("http") else f"{self.url}/{path}", timeout=20, **more)

    def post(self, path: str, form: dict[str, str], **more: Any) -> requests.Response:
        """Submit a form to a path of the platform, or to a full address, as a browser."""
        address = path if path.startswith("http") else f"{self.url}/{path}"
        return self._session.post(address, form, timeout=20, **more)

    def pay(self, number: str) -> None:
        """Let the payment company report a payment; the platform sends its notice before this returns."""
        answer = self.get(f"pay/notify/{self.order(number, 'trade_no')}/")
        assert answer.text == "success", answer.text

    def tell_again(self) -> str:
        """Run its cron job, which repeats notices that failed. Returns the log of that job."""
        self.sql("UPDATE pre_order SET notifytime = NOW() - INTERVAL 1 SECOND WHERE notify > 0")
        return self.get(f"cron.php?do=notify&key={CRON_KEY}").text

    def refund(self, number: str, money: str) -> None:
        """Refund money of a deposit, through the merchant's API."""
        form = {"pid": PID, "key": KEY, "out_trade_no": number, "money": money}
        answer = self.post("api.php?act=refund", form).json()
        assert answer["code"] == 0, answer

    def export(self) -> bytes:
        """Sign in as the merchant and download the order list."""
        form = {"type": "0", "user": PID, "pass": KEY}
        answer = self.post("user/ajax.php?act=login", form, headers={"Referer": f"{self.url}/user/login.php"}).json()
        assert answer["code"] == 0, answer
        return self.get("user/download.php?act=order").content


if __name__ == "__main__":
    sys.exit(missing(*sys.argv[1:2] or [""]) or None)
