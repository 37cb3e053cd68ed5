"""Label images: how many pixels each class covers."""
