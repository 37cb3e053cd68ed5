"""JupyterLab of compose's profile portal: its token is a file, as all secrets are."""

from pathlib import Path

c = get_config()  # noqa: F821  # Jupyter's
c.IdentityProvider.token = Path("/run/secrets/jupyter_token").read_text(encoding="utf-8").strip()
c.ServerApp.root_dir = "/srv/portal"
