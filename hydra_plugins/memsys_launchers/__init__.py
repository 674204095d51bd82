"""Hydra launchers for sweeps: ``hydra/launcher=slurm`` and ``hydra/launcher=local``.

Hydra takes launchers from packages under ``hydra_plugins`` alone. What they do is in :mod:`eval.sweep`.
"""
