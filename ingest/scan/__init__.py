"""A scan: from a source's listing to rows in the catalog."""
