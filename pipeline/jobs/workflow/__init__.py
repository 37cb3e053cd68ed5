"""A job as a workflow of tasks: their states, and what drives them."""
