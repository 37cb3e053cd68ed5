"""JSON of accounts: users, tokens, collections, the audit log."""
