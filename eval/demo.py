"""Put the sample conversation through RAG, A-Mem and CLAG on a small model: ``memsys demo``.

It fetches the models that it needs (0.6 GB) where they are not here, and takes minutes on two cores. What follows are
settings as those of `memsys run`, for instance `memsys demo seed=1`.
"""

import argparse
from collections.abc import Sequence

from eval.commands.commands import described, explains_errors, program, start
from eval.commands.fetching import fetch_missing
from eval.commands.help_text import Paragraphs
from eval.config.first_run import missing_models
from eval.config.presets import CONF, read_settings
from eval.run import compose_and_run

EXPERIMENT = "quickstart"


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Fetch what is missing and run the demo; returns the exit status."""
    parser = argparse.ArgumentParser(prog=program("demo"), description=described(__doc__), formatter_class=Paragraphs)
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE", help="settings, which override the demo's")
    options = parser.parse_args(arguments)
    defaults = read_settings(CONF / "experiment" / f"{EXPERIMENT}.yaml")["defaults"]
    backbone = next(entry["override /backbone"] for entry in defaults if "override /backbone" in entry)
    fetch_missing(missing_models(backbone), agreed=True)
    compose_and_run([f"+experiment={EXPERIMENT}", *options.settings])
    return 0


if __name__ == "__main__":
    start(main)
