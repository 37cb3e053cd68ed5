"""Jobs that put frames through a trained model: validations and predictions."""
