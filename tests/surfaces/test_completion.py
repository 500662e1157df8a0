"""Shell completion, as the README has it switched on: what the shells are told of commands, options and values."""

import os
import subprocess
import sys

import pytest

SCRIPTS = {"bash": "complete -o nosort", "zsh": "#compdef crawlkit", "fish": "complete --no-files --command crawlkit"}


def told(shell: str, *words: str) -> str:
    """Return what crawlkit tells a shell that completes the last of `words`."""
    env = os.environ | {
        "_CRAWLKIT_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": " ".join(("crawlkit", *words)),
        "COMP_CWORD": str(len(words)) if shell != "fish" else words[-1],
    }
    return run(env)


def run(env: dict[str, str]) -> str:
    done = subprocess.run([sys.executable, "-m", "crawlkit"], env=env, capture_output=True, text=True, timeout=30, check=True)
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("shell", SCRIPTS)
def test_the_script_of_each_shell_is_written(shell: str) -> None:
    assert SCRIPTS[shell] in run(os.environ | {"_CRAWLKIT_COMPLETE": f"{shell}_source"})


@pytest.mark.parametrize("shell", SCRIPTS)
def test_commands_options_and_values_are_completed(shell: str) -> None:
    assert "resume" in told(shell, "re")
    assert "report" in told(shell, "re")
    assert "--max-pages-per-host" in told(shell, "run", "--max-p")
    assert "json" in told(shell, "run", "--log-format", "")
    assert "schema" in told(shell, "config", "sc")
