"""All data sets by name, for the scripts that go through them."""

from collections.abc import Mapping

from eval.loaders.bioasq import BIOASQ
from eval.loaders.contract import DatasetInfo
from eval.loaders.hotpotqa import HOTPOTQA, HOTPOTQA_OFFICIAL
from eval.loaders.locomo import LOCOMO
from eval.loaders.perltqa import PERLTQA

#: Key, as ``memsys data`` takes it -> facts.
DATASETS: Mapping[str, DatasetInfo] = {
    info.key: info for info in (LOCOMO, HOTPOTQA, HOTPOTQA_OFFICIAL, BIOASQ, PERLTQA)
}
