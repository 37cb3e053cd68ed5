"""Pictures of frames: the files of their sources, and images made of them."""
