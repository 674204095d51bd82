"""Lines of a log: what they quote is made safe, up to the last one."""

import subprocess
import sys

LATE = """
import logging
from eval.cli.commands import use_safe_streams

logging.basicConfig(format="%(message)s")
use_safe_streams()


class Late:
    def __del__(self):
        logging.getLogger("late").error("api_key=%s, Bearer %s, http://me:pass@host\\x1b[2J", "a1b2c3d4", "0123456789")


late = Late()  # goes when Python clears the modules, after it has switched importing off
"""


def test_a_line_written_while_python_shuts_down_is_still_made_safe() -> None:
    """It was a traceback of logging's own: what makes a line safe was imported with the first line."""
    done = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, check=True)
    assert done.stderr == "api_key=***, Bearer ***, http://***@host\\x1b[2J\n"
