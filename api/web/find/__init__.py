"""Find: what its URL asks, and how the answer is drawn."""
