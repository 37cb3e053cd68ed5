"""From files in a source to rows in the catalog: pairing, counting, registering."""
