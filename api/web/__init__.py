"""The web page: pages of HTML over the same services as every other door (docs/decisions/0054)."""
