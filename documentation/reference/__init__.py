"""Pages of the reference that code writes: every command, route, setting and tag."""

from documentation.reference import commands, routes, settings, tags


def pages() -> dict[str, str]:
    """Each page's text by its name in docs/reference/."""
    api = routes.document()
    return {
        "commands.md": commands.page(),
        "routes.md": routes.page(api),
        "schemas.md": routes.schemas(api),
        "settings.md": settings.page(),
        "tags.md": tags.page(),
    }
