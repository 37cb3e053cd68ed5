"""The server and the command line: the same calls, two ways in."""
