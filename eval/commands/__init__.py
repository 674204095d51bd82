"""Common parts of the commands: exit statuses, options, terminal output."""
