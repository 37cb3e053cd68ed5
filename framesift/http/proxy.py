"""The proxy by which a server is asked, as httpx takes it from the environment."""

from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass


def proxy_of(url: str) -> str:
    """Address of the proxy, and the variable that names it; empty without one, and no password."""
    parts, proxies = urlsplit(url), getproxies()
    name = next((each for each in (parts.scheme, "all") if proxies.get(each)), "")
    if not name or proxy_bypass(parts.netloc):
        return ""
    address = proxies[name].rpartition("@")[2].rpartition("://")[2].rstrip("/")
    return f"{address} ({name.upper()}_PROXY)"
