"""The harness: loaders, runner, reader, scoring, statistics, tables. Import with ``from eval import ...`` only."""

import sys


def _end_quietly(kind: type[BaseException], error: BaseException, trace: object) -> None:
    """Say in one line that a command was interrupted before it had begun; show every other error."""
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)  # type: ignore[arg-type]
        return
    sys.stderr.write("error: interrupted\n")
    sys.exit(130)


# While Python looks for the module of `python -m eval.X`, it imports this package first: imports take a second, in
# which Ctrl-C is likely. Other programs that import the package keep their own hook.
if sys.argv[:1] == ["-m"]:
    sys.excepthook = _end_quietly
