"""The names in catalog.memory.wide_tables, for statements: commands load no table for them."""

TAGGED_FILES = "tagged_files"
UNTAGGED_FILES = "untagged_files"
EVERY_FILE = "every_file"
"""View of both: a file without tags has nulls."""

FKEY_HASH = "fkey_hash"
"""Half of the MD5 of a file's fkey: its place in every random order."""

FILENAME_HASH = "filename_hash"
"""Hash of a file's name without blanks at its end, which do not count in Db2; only the engine in
memory has it, so that the engine's own hash will do."""

LABEL_SIZE = "label_size"
"""Size of the file that a frame's label_file names [bytes]."""

ROW_NUMBER = "_row_number"
"""Number of a row of either table, which no other row ever had; no tag's name."""

HASH_OF_FKEY = "md5_number_lower(f.fkey)"
"""MD5 and not the engine's hash(): a seed must mean the same in every version."""

HASH_OF_FILENAME = (
    "hash(CASE WHEN suffix(f.filename, ' ') THEN rtrim(f.filename, ' ') ELSE f.filename END)"
)


def in_family(table: str) -> str:
    """Name of the column that says whether a family has a row for the file; no tag's name."""
    return f"_in_{table}"
