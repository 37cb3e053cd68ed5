"""Jobs and the backends that run them."""
