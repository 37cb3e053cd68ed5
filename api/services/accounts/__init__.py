"""Users, tokens, collections and the audit log."""
