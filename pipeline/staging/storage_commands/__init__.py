"""Commands of storage systems, which run where those are administered."""
