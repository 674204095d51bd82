"""Reading YAML files: what cannot be read is one message."""

from pathlib import Path
from typing import Any

from memsys.errors import ConfigError


def read_yaml(path: Path, missing: str) -> Any:
    """Read a YAML file.

    Args:
        path: of the file.
        missing: what to say after "does not exist".

    Raises:
        ConfigError: it is missing, or no YAML.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml, where PyYAML has it: a tenth of the time
    try:
        return yaml.load(path.read_text(encoding="utf-8"), loader)
    except FileNotFoundError as error:
        raise ConfigError(f"{path} does not exist; {missing}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
