"""OpenID providers of tests may take as long as a machine stands still, and not 5 s."""

from api.oidc import fetched_json


def wait_for_providers() -> None:
    """Have this process, and those forked from it, wait for a provider's answer as for a hang."""
    fetched_json.TIMEOUT_S = 120.0
