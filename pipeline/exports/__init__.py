"""Datasets as other trainers read them: images and masks of class ids, in files or shards."""
