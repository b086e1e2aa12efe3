"""The Host header: HTTP/1.1 needs a valid one, HTTP/1.0 needs none."""

import pytest


@pytest.fixture
def status(service, raw):
    """`status("1.1", "a", "b")`: the status of the response to a request with these Host headers."""

    def ask(version, *hosts):
        head = "".join(f"Host: {host}\r\n" for host in hosts)
        with_end = f"GET /healthz HTTP/{version}\r\n{head}Connection: close\r\n\r\n"
        return raw(service.port).send(with_end.encode()).answer().split()[1].decode()

    return ask


def test_a_request_has_one_valid_host(status):
    assert status("1.1", "localhost") == "200"
    assert status("1.0") == "200"
    for hosts in ((), ("localhost", "localhost"), ("localhost", "evil.example"), ("",), ("a..b",), ("x" * 64,)):
        assert status("1.1", *hosts) == "400", hosts
