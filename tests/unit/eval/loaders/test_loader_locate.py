"""Where files of data sets are looked for, and what is said of those that are not there."""

import logging
import shutil
from pathlib import Path

import pytest

from eval.loaders.bioasq import BioasqConfig
from eval.loaders.locate import sample_path
from eval.loaders.longmemeval import LongmemevalConfig
from eval.loaders.perltqa import PerltqaConfig
from eval.loaders.realtalk import RealtalkConfig
from memsys.errors import DataError


def test_a_command_is_named_only_where_it_fetches_the_file(tmp_path: Path) -> None:
    """`memsys data perltqa` fetches version 2: after it the same message came again."""
    (tmp_path / "perltqa").mkdir()
    with pytest.raises(DataError, match=r"Fetch it with `memsys data perltqa`"):
        PerltqaConfig(data_dir=str(tmp_path)).load()
    with pytest.raises(
        DataError, match=r"longmemeval_s.json: no such file.*`memsys data longmemeval` fetches .* alone"
    ):
        LongmemevalConfig(data_dir=str(tmp_path), file="longmemeval_s.json").load()


def test_a_folder_that_lacks_published_files_is_said_to(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Five of BioASQ's six batches gave ten full pools of other questions, without a word."""
    folder = tmp_path / "batches"
    shutil.copytree(sample_path("bioasq20", "sample"), folder)
    with caplog.at_level(logging.WARNING):
        BioasqConfig(path=str(folder), pools=1, pool_questions=1).load()
    (said,) = (record.getMessage() for record in caplog.records)
    assert said.startswith(f"{folder} lacks 10B") and said.endswith("what is asked is not what was published")
    caplog.clear()
    BioasqConfig(sample=True).load()
    RealtalkConfig(sample=True).load()
    assert not caplog.records


def test_a_file_where_a_folder_belongs_is_said_to_be_one(tmp_path: Path) -> None:
    (tmp_path / "10B1_golden.json").write_text("{}")
    with pytest.raises(DataError, match=r"is a file; dataset\.path names the folder"):
        BioasqConfig(path=str(tmp_path / "10B1_golden.json")).load()
