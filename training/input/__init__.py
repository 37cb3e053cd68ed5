"""The input of a network: frames of a dataset, in their order, and weights of classes."""
