"""Routes of users, tokens, collections, the caller's own account, and the audit log."""
