"""Where a command's answers come from: a home on this machine, or a server.

A module per subject: what commands ask of it, as a protocol, and both who answer. Commands print
what they are answered, and do not know who it was.
"""
