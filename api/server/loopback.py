"""Which names and addresses are this machine's own."""

import ipaddress


def is_loopback(name: str) -> bool:
    """Whether a host's name or address is."""
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
