"""Build the wheel with the folders that a checkout has next to the packages; ``pyproject.toml`` cannot say that."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

#: Folders that :func:`memsys.assets.paths.shipped` finds, in a checkout and in ``memsys/_shipped`` of a wheel.
SHIPPED = ("conf", "datasets", "results/printed")
#: Settings of one machine stay there.
NOT_SHIPPED = shutil.ignore_patterns("local", "__pycache__")


class BuildWithShippedFiles(build_py):
    """Copies the folders next to the packages into the package ``memsys``; an editable install needs no copy."""

    def run(self) -> None:
        """Build."""
        super().run()
        if self.editable_mode:
            return
        for name in SHIPPED:
            target = Path(self.build_lib) / "memsys" / "_shipped" / name
            shutil.copytree(name, target, ignore=NOT_SHIPPED, dirs_exist_ok=True)


setup(cmdclass={"build_py": BuildWithShippedFiles})
