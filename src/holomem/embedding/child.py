"""Work in another Python process, whose memory goes when it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Any, Final

from holomem.errors import ModelError

__all__ = ["AGAIN", "ChildError", "ending", "run", "start"]

AGAIN: Final = "try again when more memory is free"

_FLAGS: Final = getattr(subprocess, "CREATE_NO_WINDOW", 0)


class ChildError(ModelError):
    """A process ended with another exit code than 0, or by a signal (then `code` is negative)."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def start(function: str, *arguments: str, **pipes: Any) -> subprocess.Popen[bytes]:
    """A new process that calls `package.module.function()` with these arguments in sys.argv[1:].

    It finds the packages that this process finds. ModelError when no process can be started.
    """
    if not sys.executable:
        raise ModelError("sys.executable does not say which Python to start; run holomem by a Python interpreter")
    module, _, name = function.rpartition(".")
    # Not by -m: a package may import the module, and it would stand there twice.
    command = [sys.executable, "-P", "-c", f"from {module} import {name}; {name}()", *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    try:
        return subprocess.Popen(command, env=environment, creationflags=_FLAGS, **pipes)
    except OSError as error:
        raise ModelError(f"{sys.executable} cannot be started ({error}); {AGAIN}") from error


def run(what: str, function: str, *arguments: str, remedy: str = AGAIN) -> None:
    """Call the function in a process and wait. ChildError with its last line of stderr, or how it ended."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    process = start(function, *arguments, **pipes)
    try:
        _, said = process.communicate()
    except BaseException:
        process.kill()
        process.wait()
        raise
    if process.returncode != 0:
        lines = said.decode("utf-8", "replace").strip().splitlines() if process.returncode > 0 else []
        message = lines[-1] if lines else f"{what} {ending(process.returncode)}; {remedy}"
        raise ChildError(message, process.returncode)


def ending(code: int) -> str:
    """How a process ended, in words."""
    if code >= 0:
        return f"ended with exit code {code}"
    return f"was ended by {signal.Signals(-code).name}, perhaps for want of memory"
