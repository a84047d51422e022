"""The recipes of docs/libraries.md, pasted."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "libraries.md"
RECIPES = re.findall(r"^## ([^\n]+)\n(?:(?!^## ).)*?^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.S | re.M)


def test_every_block_of_the_page_is_a_recipe():
    assert len(RECIPES) == PAGE.read_text("utf-8").count("```python") == 7


@pytest.mark.parametrize(("title", "code"), RECIPES, ids=[title for title, _ in RECIPES])
def test_a_recipe_works_when_pasted(title, code, tmp_path):
    needed = re.match(r"# needs (\w+)", code)
    if needed and find_spec(needed[1]) is None:
        pytest.skip(f"{needed[1]} is not installed")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
