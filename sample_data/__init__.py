"""Generated road scenes in A2D2's layout: the committed set and the code that draws more."""
