"""Building sets of frames: drawn by strata, matched to a distribution, covering, uncertain.

The algorithms see arrays of a few bytes a frame (its hash, codes of its strata, chosen tags) and
answer with positions in them; draw.py asks the catalog for those arrays and for the frames chosen.
"""
