"""Access to a composed configuration by dotted names, without resolving values, so that missing ones raise nothing."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omegaconf import DictConfig

#: Parts of the configuration with free-form mappings, to which a key may be added.
_OPEN_PARTS = ("backbone", "second", "embedder", "memory", "dataset", "reader", "protocol", "scoring", "hydra")


def has_node(config: Any, key: str) -> bool:
    """Return whether a configuration holds a dotted name."""
    node = config
    for part in key.split("."):
        node = child_node(node, part)
        if node is None:
            return False
    return True


def child_node(node: Any, part: str) -> Any:
    """Return a child's node, ``None`` if there is none; values are not resolved."""
    from omegaconf import DictConfig, ListConfig

    if (
        isinstance(node, DictConfig)
        and not node._is_none()
        and not node._is_interpolation()
        and part in list(node.keys())
    ):
        return node._get_node(part)
    if isinstance(node, ListConfig) and part.isdigit() and int(part) < len(node):
        return node._get_node(int(part))
    return None


def takes_new_key(config: "DictConfig", key: str) -> bool:
    """Return whether a key may be added: below a part, in a mapping that is not an object with settings of its own."""
    parent = key.rpartition(".")[0]
    if key.partition(".")[0] not in _OPEN_PARTS or not has_node(config, parent):
        return False
    if key.startswith("hydra."):
        return True
    node = config
    for part in parent.split("."):
        node = child_node(node, part)
    return hasattr(node, "keys") and "_target_" not in node.keys()  # noqa: SIM118 (keys of a node, unresolved)


def setting_names(node: Any, prefix: str = "") -> Iterator[str]:
    """Yield the dotted names of all settings but Hydra's."""
    from omegaconf import DictConfig

    if not isinstance(node, DictConfig) or node._is_none() or node._is_interpolation():
        return
    names: list[Any] = list(node.keys())  # of the node, unresolved
    for name in names:
        if name in ("hydra", "_target_"):
            continue
        key = f"{prefix}.{name}" if prefix else str(name)
        yield key
        yield from setting_names(node._get_node(name), key)
