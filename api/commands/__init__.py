"""The commands, a file per subject; api.command_line names them."""
