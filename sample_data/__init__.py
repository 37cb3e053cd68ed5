"""Generated road scenes: the set committed in A2D2's layout, and code that draws any layout's."""
