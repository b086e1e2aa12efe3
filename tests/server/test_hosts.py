"""The Host header on the wire: one that is valid, as HTTP/1.1 has it; none is needed by HTTP/1.0."""

import pytest


@pytest.fixture
def status(service, raw):
    """`status("1.1", "a", "b")`: that of the answer to a request with these Host headers."""

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
