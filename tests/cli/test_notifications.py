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
def group(app, robot):
    """A destination whose address has a key."""
    facts = {"severity": "urgent", "language": "en", "digest_hour": 9, "enabled": True}
    return destinations.add("wecom", {"url": f"{robot.url}?key=very-secret"}, name="Operations", **facts)


def test_the_list_is_empty_at_first(flask):
    assert "no destinations" in flask("notification", "list").output


def test_the_list_shows_the_state_of_the_last_message_and_no_secret(group, flask, flask_json):
    watch._write(group, "digest", [], 1)
    (row,) = flask_json("notification", "list")
    assert (row["name"], row["kind"], row["severity"], row["digest_hour"]) == ("Operations", "wecom", "urgent", 9)
    assert (row["enabled"], row["last"], row["failures"]) == (True, "pending", 0)
    assert row["to"].startswith("localhost:")
    assert "very-secret" not in json.dumps(row) + flask("notification", "list").output


def test_a_test_message_is_sent(group, flask, robot):
    assert "accepted" in flask("notification", "test", "Operations").output
    assert len(robot.got) == 1


def test_a_refused_test_message_ends_with_status_1(group, flask, robot):
    robot.answer = {"errcode": 93000, "errmsg": "invalid webhook url"}
    result = flask("notification", "test", "Operations", "--json", fails=True)
    assert result.exit_code == 1
    said = json.loads(result.stdout)
    assert said["accepted"] is False
    assert said["detail"] == "93000: invalid webhook url"


def test_an_unknown_name_is_refused(app, refuses):
    assert "no destination 'nope'" in refuses("notification", "test", "nope")
