"""Camera images, PNG or JPEG by their content: headers, damage, pixels."""
