"""Lines of a log: what they quote is made safe, up to the last one."""

import subprocess
import sys

import pytest

LATE = """
import logging
from eval.commands.commands import use_safe_streams

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


LEFT = """
import asyncio
from eval.commands.commands import start


async def fail():
    raise {left}


async def work():
    work.left = asyncio.create_task(fail())
    await asyncio.sleep(0)
    raise {end}


start(lambda: asyncio.run(work()))
"""


@pytest.mark.parametrize(
    ("left", "end", "message", "reported"),
    [
        ("ValueError", "KeyboardInterrupt", "error: interrupted\n", False),
        ("SystemExit(141)", "SystemExit(141)", "", False),
        ("ValueError", "SystemExit(3)", "", True),
    ],
)
def test_tasks_that_the_end_of_the_process_leaves_are_no_failures(
    left: str, end: str, message: str, reported: bool
) -> None:
    program = LEFT.format(left=left, end=end)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr.startswith(message + ("Task exception was never retrieved" if reported else ""))
    assert reported or done.stderr == message
