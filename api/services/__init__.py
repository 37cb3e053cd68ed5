"""What can be done with each noun."""
