"""The network: its layers, its files, and what is known of a model."""
