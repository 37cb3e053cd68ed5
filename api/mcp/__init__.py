"""An endpoint for assistants: the Model Context Protocol at /mcp, which changes nothing."""
