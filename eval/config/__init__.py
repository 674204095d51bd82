"""The YAML files of ``conf/``, read with and without Hydra."""
