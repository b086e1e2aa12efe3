"""`tillbook notification`: the destinations without their secrets, and test messages."""

import json

import pytest

from services.notifications import destinations, watch
from tests.services.notifications.receiving import Robot


@pytest.fixture
def settings_of_app():
    return {"private_callbacks": True}


@pytest.fixture
def robot(web_server):
    """A robot of a group, which accepts everything."""
    return Robot(web_server)


@pytest.fixture
def group(flask, robot):
    """The only destination, whose address has a key."""
    assert "no destinations" in flask("notification", "list").output
    facts = {"severity": "urgent", "language": "en", "digest_hour": 9, "enabled": True}
    return destinations.add("wecom", {"url": f"{robot.url}?key=very-secret"}, name="Operations", **facts)


def test_the_list_shows_the_state_of_the_last_message_and_no_secret(group, flask, flask_json):
    watch._write(group, "digest", [], 1)
    (row,) = flask_json("notification", "list")
    assert (row["name"], row["kind"], row["severity"], row["digest_hour"]) == ("Operations", "wecom", "urgent", 9)
    assert (row["enabled"], row["last"], row["failures"]) == (True, "pending", 0)
    assert row["to"].startswith("localhost:")
    assert "very-secret" not in json.dumps(row) + flask("notification", "list").output


def test_a_test_message_is_sent_and_a_refused_one_ends_with_status_1(group, flask, refuses, robot):
    assert "accepted" in flask("notification", "test", "Operations").output
    assert len(robot.got) == 1
    robot.answer = {"errcode": 93000, "errmsg": "invalid webhook url"}
    result = flask("notification", "test", "Operations", "--json", fails=True)
    assert result.exit_code == 1
    said = json.loads(result.stdout)
    assert (said["accepted"], said["detail"]) == (False, "93000: invalid webhook url")
    assert "no destination 'nope'" in refuses("notification", "test", "nope")
