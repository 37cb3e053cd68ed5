"""Routes of the web page; each module has a router, which api.http.app lists."""
