"""What the commands share: exit statuses, options, terminal output."""
