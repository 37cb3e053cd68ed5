"""The commands, a file per subject; api.cli.main names them."""
