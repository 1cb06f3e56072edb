"""docs/operations.md as the tests follow it: its runnable blocks, and its processes as systemd would start them."""

import configparser
import re
import shlex
import subprocess
from pathlib import Path

from tests.architecture.sources import ROOT

GUIDE = (ROOT / "docs/operations.md").read_text()
UNITS = ("ductor-web", "ductor-operator", "ductor-cluster")


def blocks() -> list[str]:
    """Return the runnable blocks in order."""
    return re.findall(r"^```console\n(.*?)^```", GUIDE, re.DOTALL | re.MULTILINE)


class Unit:
    """One systemd unit of deploy/systemd."""

    def __init__(self, name: str) -> None:
        parser = configparser.ConfigParser(strict=False, interpolation=None)
        parser.optionxform = str  # type: ignore[assignment, method-assign]
        text = (ROOT / f"deploy/systemd/{name}.service").read_text()
        self.files = re.findall(r"^EnvironmentFile=/etc/ductor/(.*)$", text, re.MULTILINE)
        parser.read_string(text)
        self.service = dict(parser["Service"])

    def command(self, folder: Path) -> list[str]:
        """Return what it starts, with the repository in `folder`."""
        return [word.replace("/opt/ductor", str(folder)) for word in shlex.split(self.service["ExecStart"])]

    def variables(self, folder: Path) -> dict[str, str]:
        """Return what its environment files set, read from `folder`."""
        return {name: value for file in self.files for name, value in read_env(folder / file).items()}


def read_env(path: Path) -> dict[str, str]:
    """Return what an environment file sets, as systemd reads it."""
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return {name: value for name, _, value in (line.partition("=") for line in lines)}


def shell(script: str, *, folder: Path, environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    """Run a block in a shell of its own that ends at the first failure; its exports go to the next one."""
    exports = shlex.quote(str(folder / "exports"))
    before = f"set -a\nif [ -f {exports} ]; then . {exports}; fi\n"
    return subprocess.run(
        ["/bin/bash", "-euo", "pipefail", "-c", f"{before}{script}\nexport -p > {exports}\n"],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
