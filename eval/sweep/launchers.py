"""The launchers of sweeps, made known to Hydra: ``hydra/launcher=slurm``, ``local`` and ``ray_cluster``."""

from hydra.core.plugins import Plugins

from eval.sweep.local_launcher import MemsysJoblibLauncher
from eval.sweep.ray_launcher import MemsysRayLauncher
from eval.sweep.slurm_launcher import MemsysSlurmLauncher

#: Names that files of ``conf/hydra/launcher`` and copies of them give. Hydra accepts a launcher below ``hydra_plugins``
#: alone, by name; the classes are elsewhere, so that memsys installs no package of that name.
NAMES = {
    "hydra_plugins.memsys_launchers.local.MemsysJoblibLauncher": MemsysJoblibLauncher,
    "hydra_plugins.memsys_launchers.ray.MemsysRayLauncher": MemsysRayLauncher,
    "hydra_plugins.memsys_launchers.slurm.MemsysSlurmLauncher": MemsysSlurmLauncher,
}


def register_launchers() -> None:
    """Make them known to Hydra."""
    Plugins.instance().class_name_to_class.update(NAMES)
