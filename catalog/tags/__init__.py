"""Tags and their families: what there is, and how they are written."""
