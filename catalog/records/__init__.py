"""The records: small transactional data in SQLite or PostgreSQL."""
