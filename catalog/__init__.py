"""The two stores: files and tags in a DuckLake catalog, small transactional records in SQL."""
