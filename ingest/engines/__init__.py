"""Engines that count a scan's frames."""
