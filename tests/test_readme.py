"""The README's code blocks run as they stand."""

import doctest
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


@pytest.fixture
def model(shared, monkeypatch):
    monkeypatch.setenv("HOLOMEM_MODEL_DIR", str(shared / "models" / "multilingual-e5-small"))


@pytest.mark.model
def test_the_tour_runs_as_it_stands(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = README.read_text(encoding="utf-8")
    tour = "\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.S))
    examples = doctest.DocTestParser().get_doctest(tour, {}, "README", str(README), 0)
    report: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(examples, out=report.append)
    assert result.attempted > 15
    assert not result.failed, "".join(report)


@pytest.mark.model
def test_the_commands_of_the_tour_run_as_they_stand(model, tmp_path):
    block = re.search(r"```console\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.S)
    commands = [line[2:] for line in block.group(1).splitlines()]
    assert len(commands) > 4
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "holomem"
        run = subprocess.run(
            [sys.executable, "-m", "holomem", *arguments], cwd=tmp_path, capture_output=True, text=True
        )
        assert run.returncode == 0, (command, run.stdout, run.stderr)
