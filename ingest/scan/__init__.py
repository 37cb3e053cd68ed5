"""A scan: from a source's listing to rows in the catalog.

A frame has five shapes on its way, File, ScannedFile, FrameFiles, FrameCount and Frame: who makes
and who reads each is a table in docs/decisions/0041-one-frame-five-shapes.md.
"""
