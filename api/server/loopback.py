"""Names and addresses of this machine itself."""

import ipaddress


def is_loopback(name: str) -> bool:
    """Return whether a host's name or address is this machine's own."""
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
