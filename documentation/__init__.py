"""The documentation's site: pages of the repository and of the reference, which code writes."""
