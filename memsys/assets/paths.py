"""Where model files lie."""

import os
from pathlib import Path

#: Root of the checkout: the folder that holds ``memsys/``.
ROOT = Path(__file__).resolve().parents[2]


def models_dir() -> Path:
    """Folder of the model and corpus files: ``$MEMSYS_MODELS``, else ``models/`` of the checkout."""
    override = os.environ.get("MEMSYS_MODELS")
    return Path(override).expanduser().resolve() if override else ROOT / "models"
