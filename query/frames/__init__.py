"""From a question to ordered frames."""
