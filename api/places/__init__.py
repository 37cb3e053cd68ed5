"""Where a command's answers come from: a home on this machine, or a server.

A module per subject: what commands ask of it, as a protocol, and the server that answers; the home
that does is in `home`, whose databases take a second to import. Commands print what they are
answered, and do not know who it was.
"""
