"""The addresses that the service calls on behalf of others, and different texts of the same address."""

from net.ip_addresses import address_of, is_public, network_of

REFUSED = str.split("""
0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 100.127.255.255 127.0.0.1 127.255.255.254
168.63.129.16 169.254.169.254 169.254.170.2 172.16.0.1 172.31.255.255 192.0.0.192 192.0.2.1 192.88.99.1 192.168.0.1
198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
:: ::1 ::7f00:1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:10.0.0.1 ::ffff:0:127.0.0.1 64:ff9b::127.0.0.1
64:ff9b::a9fe:a9fe 64:ff9b:1::8.8.8.8 100::1 2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:2::1 2001:10::1
2001:20::1 2001:db8::1 2002:7f00:1::1 2002:a00:1::1 2002:808:808::1 3fff::1 4000::1 5f00::1 fc00::1 fd00:ec2::254
fd20:ce::254 fe80::1 fe80::1%lo fe80::5efe:127.0.0.1 fec0::1 ff02::1 ff0e::1
""")
CALLED = str.split("""
1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 168.63.129.17
169.253.255.255 172.15.255.255 172.32.0.0 192.0.1.1 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0
223.255.255.255 ::ffff:8.8.8.8 64:ff9b::8.8.8.8 2001:200::1 2001:4860:4860::8888 2606:4700::1111 2a00:1450::1
""")


NO_ADDRESS = ["", "localhost", "127.1", "8.8.8.8:80", "0x7f000001", "１２７.0.0.1", "8.8.8.8\n"]


def test_only_the_addresses_of_public_servers_are_called():
    assert [address for address in (*REFUSED, *NO_ADDRESS) if is_public(address)] == []
    assert [address for address in CALLED if not is_public(address)] == []


def test_an_address_and_a_network_are_the_same_however_they_are_written():
    addresses = {
        "::ffff:203.0.113.7": "203.0.113.7",
        "::ffff:cb00:7107": "203.0.113.7",
        "2001:DB8:0::7": "2001:db8::7",
        "fe80::1%eth0": "fe80::1",
    }
    networks = {
        "::ffff:203.0.113.7": "203.0.113.7/32",
        "::ffff:203.0.113.0/120": "203.0.113.0/24",
        "::ffff:0:0/96": "0.0.0.0/0",
        "::/0": "::/0",
    }
    assert {text: str(address_of(text)) for text in addresses} == addresses
    assert {text: str(network_of(text)) for text in networks} == networks
