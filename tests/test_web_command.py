"""`holomem web` as a process: its token file, and its end."""

import http.client
import os
import re
import signal
import stat
import subprocess
import sys

import pytest
from click.testing import CliRunner

from holomem import Memory
from holomem.cli import main


def start(path, *args, **options):
    """The process, and the port that it says it listens at."""
    program = [sys.executable, "-m", "holomem", "--db", str(path), "--no-model", "web", "--port", "0", *map(str, args)]
    process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    line = process.stdout.readline()
    return process, int(re.search(r":(\d+)/", line)[1])


def ask(port, path="/", method="GET"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=90)
    connection.request(method, path)
    reply = connection.getresponse()
    found = reply.status, reply.read().decode()
    connection.close()
    return found


@pytest.mark.skipif(os.name != "posix", reason="rights of files are POSIX's")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o666, 0o620])
def test_a_token_file_that_others_may_use_is_refused_with_the_remedy(path, tmp_path, mode):
    file = tmp_path / "the token"
    file.write_text("s3cret-s3cret-s3cret\n")
    file.chmod(mode)
    result = CliRunner().invoke(main, ["--db", str(path), "--no-model", "web", "--token-file", str(file)])
    assert result.exit_code == 1
    assert f"chmod 600 '{file}'" in result.output
    assert "s3cret" not in result.output
    assert not path.exists()


def test_a_token_file_is_made_for_its_owner_only(path, tmp_path):
    file = tmp_path / "token"
    process, port = start(path, "--token-file", file, umask=0)
    assert ask(port)[0] == 303
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len(file.read_text().strip()) >= 16
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=90)
    assert file.read_text().strip() not in out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_cleanly(path, number):
    process, port = start(path)
    assert ask(port)[0] == 200
    process.send_signal(number)
    _, errors = process.communicate(timeout=90)
    assert "Traceback" not in errors
    assert process.returncode in (0, 1, 130, 143, -15)
    with Memory(path, embedder=None) as memory:
        assert memory.doctor().problems == ()
