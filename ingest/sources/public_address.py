"""Tests whether addresses are of the public internet."""

import ipaddress

_NAT64 = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "64:ff9b:1::/48")))
_COMPATIBLE = ipaddress.IPv6Network("::/96")
_OF_CLOUDS = tuple(
    map(
        ipaddress.ip_network,
        # Whatever the registries say of them, machines have services of their own there:
        # Oracle's metadata (192.0.0.192), Azure's, site-local addresses of old networks.
        ("192.0.0.0/24", "168.63.129.16/32", "fec0::/10"),
    )
)


def is_public(text: str) -> bool:
    """Return whether an address is public, and so is every other one that it stands for.

    Source: https://www.iana.org/assignments/iana-ipv6-special-registry
    """
    address = ipaddress.ip_address(text.partition("%")[0])
    addresses: list[ipaddress.IPv4Address | ipaddress.IPv6Address] = [address]
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped:  # itself never global
            addresses = [address.ipv4_mapped]
        if any(address in network for network in (*_NAT64, _COMPATIBLE)):
            addresses = [ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)]
            if address in _NAT64[1]:  # private by itself, and where the IPv4 stands is not fixed
                return False
        addresses += [inner for inner in (address.sixtofour, *(address.teredo or ())) if inner]
    return all(
        one.is_global and not one.is_multicast and not any(one in each for each in _OF_CLOUDS)
        for one in addresses
    )
