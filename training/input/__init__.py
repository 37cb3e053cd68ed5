"""What a network is given: frames of a dataset, in their order, and weights of classes."""
