"""Routes of the web page; each module has a router, which api.app lists."""
