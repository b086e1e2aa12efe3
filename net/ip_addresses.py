"""IP addresses: which ones the service may call, and which notations are equal."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

MAPPED = IPv6Network("::ffff:0:0/96")  # IPv4 addresses on a socket that accepts both versions
NAT64 = IPv6Network("64:ff9b::/96")  # IPv4 addresses from a network without IPv4
GLOBAL_UNICAST = IPv6Network("2000::/3")
_BRACKETS_OR_PORT = re.compile(r"\[([^\[\]]+)\](?::[0-9]{1,5})?|([0-9.]+):[0-9]{1,5}")

# Addresses that IANA's special-purpose registries and clouds reserve. `ipaddress` has lists of its own, which differ
# between versions of Python.
NOT_PUBLIC = tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/8",  # this host
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT, and metadata of a cloud
        "127.0.0.0/8",
        "168.63.129.16/32",  # a cloud's host, from within its machines
        "169.254.0.0/16",  # link-local, and most clouds' metadata
        "172.16.0.0/12",
        "192.0.0.0/24",  # protocols, and metadata of a cloud
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # relays of 6to4
        "192.168.0.0/16",
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
        "2001::/23",  # protocols: Teredo, ORCHID, benchmarks
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4, whose relays choose the destination
        "3fff::/20",  # documentation
    )
)


def address_of(text: str) -> Address | None:
    """Parse an address, without its zone; an IPv4 address in IPv6 notation becomes IPv4. None for other texts."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return _ipv4_in(address, MAPPED) or address


def forwarded_address(text: str) -> Address | None:
    """Parse an address as proxies write it in X-Forwarded-For, also in brackets, in quotes or with a port.

    None for other texts, such as `unknown`.
    """
    text = text.strip().strip('"')
    found = _BRACKETS_OR_PORT.fullmatch(text)
    return address_of(found[1] or found[2] if found else text)


def network_of(text: str) -> Network:
    """Parse a network or a single address; IPv4 in IPv6 notation becomes IPv4. Raises ValueError."""
    network = ip_network(text)
    if isinstance(network, IPv6Network) and network.subnet_of(MAPPED):
        return IPv4Network((int(network.network_address) & 0xFFFFFFFF, network.prefixlen - MAPPED.prefixlen))
    return network


def is_within(text: str | None, networks: Iterable[Network]) -> bool:
    """Return whether a text is an IP address in one of the networks."""
    address = address_of(text or "")
    return address is not None and any(address in network for network in networks)


def is_public(text: str) -> bool:
    """Return whether this is the address of a public server, which the service may call on behalf of others."""
    address = address_of(text)
    if address is None:
        return False
    address = _ipv4_in(address, NAT64) or address
    if isinstance(address, IPv6Address) and address not in GLOBAL_UNICAST:
        return False
    return not any(address in network for network in NOT_PUBLIC)


def _ipv4_in(address: Address, network: IPv6Network) -> IPv4Address | None:
    return IPv4Address(int(address) & 0xFFFFFFFF) if address in network else None
