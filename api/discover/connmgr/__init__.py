"""/connmgr: connections, and their scans."""
