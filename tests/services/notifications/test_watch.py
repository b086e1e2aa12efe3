"""Which findings each destination receives, and when: once each, also after a restart and with several hosts."""

import json
import threading
from datetime import UTC, datetime

import pytest

from models.db.base import database
from models.tables.notification import Destination, KnownFinding
from runtime.state import current
from services.channels import health
from services.merchants import cache
from services.notifications import destinations, watch
from services.security import vault
from tests.services.notifications.receiving import FACTS


@pytest.fixture
def findings(app):
    """`findings()`: what was told, by kind."""
    return lambda: {row.kind: row.severity for row in KnownFinding.select()}


def test_a_finding_is_told_once_and_again_when_it_is_resolved(group, told, low, ahead):
    assert told() == []
    low()
    (new,) = told()
    assert new.startswith("New: ")
    assert new.endswith("the balance at the channel is below its limit.")
    assert told() == [] == told()
    low(False)
    assert told() == []
    ahead(watch.CALM + 1)
    assert told() == [new.replace("New:", "Resolved:")]
    ahead(watch.CALM + 1)
    assert told() == []
    low()
    assert told() == [new]


def test_a_finding_that_returns_soon_causes_no_message(group, told, low, ahead):
    low()
    assert len(told()) == 1
    for _ in range(2):
        low(False)
        assert told() == []
        ahead(watch.CALM - 10)
        low()
        assert told() == []
        ahead(60)


def test_a_finding_without_urgency_is_told_once_it_has_lasted(group, told, api, flask, ahead, findings):
    short = api.sell().data["order_no"]
    assert told() == []
    assert list(findings().values()) == [""]
    flask("order", "reject", short, "--reason", "wrong account")
    ahead(3600)
    assert told() == []
    assert findings() == {}
    api.sell()
    assert told() == []
    ahead(watch.PATIENCE["soon"] + 1)
    (line,) = told()
    assert line.startswith("New: ")
    assert told() == []


def test_a_finding_that_becomes_urgent_is_told_again(group, told, api, ahead):
    api.sell()
    told()
    ahead(200)
    (first,) = told()
    ahead(86_400)
    (line,) = [each for each in told() if each.startswith("Now urgent: ")]
    assert line.partition(":")[2].split("(")[0] == first.partition(":")[2].split("(")[0]
    assert not any(each.startswith("Now urgent") for each in told())


def test_a_destination_for_urgent_findings_hears_when_they_become_urgent_and_when_they_ease(
    add, robot, told, api, flask, ahead
):
    def changes():
        return [line.partition(":")[0] for line in told()]

    add("wecom", about={"severity": "urgent"}, url=robot.url)
    late = api.sell().data["order_no"]
    assert changes() == []
    ahead(200)
    assert changes() == []
    ahead(86_400)
    assert changes() == ["New"]
    api.sell()
    flask("order", "reject", late, "--reason", "wrong account")
    assert changes() == []
    ahead(watch.CALM + 1)
    assert changes() == ["No longer urgent"]


def test_changes_at_the_same_time_are_one_message(group, told, robot):
    destinations.set_balance_limits({1: 10**14, 2: 10**14, 3: 10**14})
    assert len(told()) == 3
    assert len(robot.got) == 1
    assert "3 changes" in robot.got[0].content["text"]["content"].splitlines()[0]


def test_each_destination_has_its_language(group, add, robot, told, low):
    add("wecom", "中文群", about={"language": "zh"}, url=robot.url)
    low()
    english, chinese = sorted(told(), key=lambda line: not line.isascii())
    assert english.endswith("the balance at the channel is below its limit.")
    assert chinese.startswith("新增：")
    assert chinese.endswith("渠道余额低于设定的下限。")


def test_two_hosts_tell_a_finding_once(group, low, outbox):
    """Both compare the same findings with the same database at the same time."""
    low()
    barrier, runtime, failed = threading.Barrier(4), current(), []

    def host():
        barrier.wait()
        try:
            watch.evaluate()
        except Exception as error:
            failed.append(error)
        finally:
            database.close()

    threads = [threading.Thread(target=runtime.bound(host)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert len(outbox()) == 1


def test_a_stale_host_and_a_restart_change_nothing_and_a_first_destination_hears_what_is_open(
    add, robot, group, told, look, low, outbox
):
    low()
    seen = watch._seen()
    look()
    watch._tell(seen, datetime.now(UTC).timestamp())  # findings from before another host told them
    assert len(outbox()) == 1
    destinations.delete(group)
    look()
    add("wecom", url=robot.url)
    assert len(told()) == 1
    chosen = current().settings
    current().parts.clear()
    vault.open_vault(chosen.vault_key, chosen.instance / "vault.key", create=False)
    database.close()
    assert told() == []


def test_without_an_enabled_destination_nothing_is_evaluated(group, told, low, findings):
    low()
    assert len(told()) == 1
    destinations.change(group, {}, name=group.name, **FACTS | {"enabled": False})
    assert told() == []
    assert findings() == {}
    destinations.change(group, {}, name=group.name, **FACTS)
    assert len(told()) == 1


def test_a_digest_is_sent_once_a_day_at_its_hour(add, robot, told, low, time_machine):
    time_machine.move_to(datetime(2026, 5, 1, 1, tzinfo=UTC))  # 9:00 in China
    add("wecom", about={"digest_hour": 10}, url=robot.url)
    low()
    assert [line.partition(":")[0] for line in told()] == ["New"]
    time_machine.move_to(datetime(2026, 5, 1, 2, tzinfo=UTC))
    lines = told()
    assert {line.partition(":")[0] for line in lines} == {"Open"}
    assert "Daily digest" in robot.got[0].content["text"]["content"].splitlines()[0]
    assert told() == []
    time_machine.move_to(datetime(2026, 5, 1, 15, tzinfo=UTC))
    assert not any("Daily digest" in got.text for got in (told(), robot.got)[1])
    time_machine.move_to(datetime(2026, 5, 2, 4, tzinfo=UTC))  # the service was stopped at 10:00
    told()
    assert sum("Daily digest" in got.text for got in robot.got) == 1


def test_digests_continue_when_a_clock_that_was_ahead_is_set_back(add, robot, told, time_machine):
    time_machine.move_to(datetime(2027, 5, 1, 1, tzinfo=UTC))
    add("wecom", about={"digest_hour": 10}, url=robot.url)
    for year in (2027, 2026):
        time_machine.move_to(datetime(year, 5, 1, 2, tzinfo=UTC))
        sent = [sum("Daily digest" in got.text for got in (told(), robot.got)[1]) for _ in range(2)]
        assert sent == [1, 0]


def test_a_new_destination_gets_its_first_digest_at_the_next_hour_even_without_findings(add, robot, told, time_machine):
    time_machine.move_to(datetime(2026, 5, 1, 4, tzinfo=UTC))  # noon in China
    add("wecom", about={"digest_hour": 10, "severity": "urgent"}, url=robot.url)
    assert told() == []
    time_machine.move_to(datetime(2026, 5, 2, 2, tzinfo=UTC))
    assert told() == ["Nothing needs attention."]


def test_the_history_of_a_destination_is_bounded(group, outbox, monkeypatch):
    monkeypatch.setattr(watch, "KEPT", 5)
    for number in range(12):
        watch._write(group, "findings", [{"change": "new", "kind": "x", "severity": "soon", "text": str(number)}], 1)
    assert [row.changes[0]["text"] for row in outbox()] == ["7", "8", "9", "10", "11"]


def test_messages_have_no_personal_data(add, robot, look, api, ahead, outbox):
    """A withdrawal with a payee, late: the messages of all languages have none of it."""
    add("wecom", "en", url=robot.url, about={"digest_hour": 0})
    add("wecom", "zh", url=robot.url, about={"language": "zh"})
    api.sell(customer_name="王小明")
    ahead(86_500)
    look()
    sent = json.dumps([row.lines for row in outbox()], ensure_ascii=False) + "".join(got.text for got in robot.got)
    assert robot.got
    for private in ("王小明", "张三", "6222"):
        assert private not in sent


def test_a_destination_that_keeps_failing_is_a_finding(group, add, look, robot, ahead, low, findings):
    add("webhook", "Broken", url=f"{robot.url}/absent", secret="whsec_" + "A" * 40)
    low()
    for seconds in (0, 61, 301):
        ahead(seconds)
        look()
    assert Destination.get(name="Broken").failures == 3
    ahead(1)
    look()
    ahead(130)
    look()
    assert findings()["unreachable"] == "soon"
    assert "Notifications to Broken fail. Failed attempts: 3." in robot.got[-1].text


def test_a_failing_channel_is_told_at_once_with_its_page_and_when_it_works_again(group, told, clock):
    for _ in range(5):
        health.record(2, "wxpay", "the merchant is limited")
    (new,) = told()
    assert new.startswith("New: Sandbox B: new payments fail (WeChat Pay). Failed: 5 of the last 5.")
    assert new.endswith(" https://pay.example.com/console/channel/2#health")
    clock(61)
    cache.forget()
    health.record(2, "wxpay", "")
    assert told() == []
    clock(61 + watch.CALM + 1)
    (resolved,) = told()
    assert resolved.startswith("Resolved: Sandbox B: new payments fail (WeChat Pay).")
