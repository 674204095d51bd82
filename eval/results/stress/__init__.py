"""Results of systems on data that were changed on purpose."""
