"""Jobs on machines that are reached by ssh and have no resource manager."""
