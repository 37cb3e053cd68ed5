"""A question as data: conditions, their SQL, and their words."""
