"""Maintenance of a catalog: checks, backups, compaction, copies, exports."""
