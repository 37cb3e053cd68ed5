"""Commands that fill caches, and look at and tidy what lies in them."""
