"""Where a catalog lies: locations, servers, locks, and files written so that nothing is lost."""
