"""IBM Spectrum Scale's Active File Management (AFM) as a cache, driven by its own commands."""
