"""DuckLake's own functions and tables: beside catalog.lake.connection, all that knows DuckLake."""
