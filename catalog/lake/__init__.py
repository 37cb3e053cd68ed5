"""DuckLake: connections to a catalog, its tables and views, and the guard of SQL."""
