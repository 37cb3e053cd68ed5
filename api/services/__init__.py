"""Services: the operations on each noun."""
