"""A run: plan, runner, reader, backbones, progress, stopping."""
