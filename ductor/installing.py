"""The virtual environment beside manage.py: made once, filled from the requirements files, checked by their hash.

Standard library only: this runs before anything is installed.
"""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import selectors
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

NETWORK = re.compile(
    r"Retrying \(Retry|NewConnectionError|name resolution|Name or service not known|Connection refused"
    r"|Network is unreachable|ProxyError|ConnectTimeout|Read timed out|SSLError"
)
FULL_DISK = "No space left on device"


class InstallFailed(Exception):
    """The environment could not be made; the message is one line that says why and what to do."""


class ProgressLine:
    """One line on stderr that is rewritten in place; without a terminal, one plain line for each change."""

    def __init__(self, stream: IO[str] = sys.stderr) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._text = ""
        self._since = time.monotonic()

    def show(self, text: str) -> None:
        """Replace the line's text."""
        if text == self._text:
            return
        self._text, self._since = text, time.monotonic()
        if self._live:
            self._draw(text)
        else:
            print(text, file=self._stream, flush=True)

    def tick(self) -> None:
        """Show how long the current act has taken, so that a slow one is not mistaken for a hung one."""
        waited = int(time.monotonic() - self._since)
        if self._live and waited >= 2:
            self._draw(f"{self._text} · {waited} s")

    def close(self) -> None:
        """Leave the terminal on a fresh, empty line."""
        if self._live and self._text:
            self._stream.write("\r\x1b[2K")
            self._stream.flush()

    def _draw(self, text: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        self._stream.write("\r\x1b[2K" + text[:width])
        self._stream.flush()


class Environment:
    """`.venv` under `root` and the stamp in it that says which requirements it holds."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / ".venv"
        self.python = self.folder / "bin" / "python"
        self.stamp = self.folder / "ductor-requirements.json"
        self.log = root / ".venv" / "ductor-install.log"

    @property
    def active(self) -> bool:
        """Whether this very interpreter is the environment's."""
        return Path(sys.prefix).resolve() == self.folder.resolve()

    def requirements(self, dev: bool) -> tuple[str, list[Path]]:
        """Return the stamp's key and the files to install."""
        base = self.root / "requirements.txt"
        return ("dev", [base, self.root / "requirements-dev.txt"]) if dev else ("base", [base])

    def digest(self, files: Iterable[Path]) -> str:
        """Hash the files' contents and the environment's Python version.

        Raises:
            InstallFailed: a file can't be read.
        """
        total = hashlib.sha256(f"{self._python_version()}\n".encode())
        for file in files:
            try:
                total.update(file.read_bytes() + b"\0")
            except OSError as error:
                raise InstallFailed(f"can't read {file}: {error.strerror}") from error
        return total.hexdigest()

    def _python_version(self) -> str:
        # An existing environment keeps the version it was made with, whichever python3 starts manage.py.
        with contextlib.suppress(OSError):
            for line in (self.folder / "pyvenv.cfg").read_text().splitlines():
                name, _, value = line.partition("=")
                if name.strip() == "version":
                    return ".".join(value.strip().split(".")[:2])
        return f"{sys.version_info[0]}.{sys.version_info[1]}"

    def is_ready(self, *, dev: bool) -> bool:
        """Say whether the environment works and holds what the requirements files now ask for."""
        if not os.access(self.python, os.X_OK):
            return False
        key, files = self.requirements(dev)
        try:
            stored = json.loads(self.stamp.read_text())
        except (OSError, ValueError):
            return False
        return isinstance(stored, dict) and stored.get(key) == self.digest(files)

    def prepare(self, *, dev: bool, progress: ProgressLine | None = None) -> bool:
        """Make the environment fit the requirements files; return whether anything was installed.

        Two processes at once: the second waits for the first and then finds the work done.

        Raises:
            InstallFailed: with the reason in one line.
        """
        if self.is_ready(dev=dev):
            return False
        progress = progress or ProgressLine()
        try:
            with self._lock(progress):
                if self.is_ready(dev=dev):
                    return False
                self._make(progress)
                self._install(dev, progress)
        except OSError as error:
            raise InstallFailed(_explain_os_error(error, self.folder)) from error
        finally:
            progress.close()
        return True

    @contextlib.contextmanager
    def _lock(self, progress: ProgressLine) -> Iterator[None]:
        with (self.root / ".venv.lock").open("a") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                progress.show("another manage.py is installing; waiting for it")
                fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def _make(self, progress: ProgressLine) -> None:
        if self._works():
            return
        progress.show(f"making {self.folder} with Python {sys.version_info[0]}.{sys.version_info[1]}")
        self.stamp.unlink(missing_ok=True)
        # --clear: what an interrupted run left behind is not worth repairing.
        result = subprocess.run(
            [sys.executable, "-m", "venv", "--clear", str(self.folder)], capture_output=True, text=True
        )
        if result.returncode != 0:
            raise InstallFailed(_explain_venv(result.stdout + result.stderr, self.folder))

    def _works(self) -> bool:
        if not os.access(self.python, os.X_OK):
            return False
        return subprocess.run([str(self.python), "-c", "import pip"], capture_output=True).returncode == 0

    def _install(self, dev: bool, progress: ProgressLine) -> None:
        key, files = self.requirements(dev)
        digest = self.digest(files)
        base_digest = self.digest(self.requirements(dev=False)[1])
        command = [str(self.python), "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
        command += ["--progress-bar", "off", "--retries", "2"]
        for file in files:
            command += ["-r", str(file)]
        lines = self._run_pip(command, progress)
        if lines is not None:
            raise InstallFailed(_explain_pip(lines, self.log))
        self._write_stamp({"base": base_digest, key: digest})

    def _write_stamp(self, digests: dict[str, str]) -> None:
        try:
            stored = json.loads(self.stamp.read_text())
        except (OSError, ValueError):
            stored = {}
        fresh = self.stamp.with_suffix(".new")
        fresh.write_text(json.dumps({**stored, **digests}))
        fresh.replace(self.stamp)

    def _run_pip(self, command: list[str], progress: ProgressLine) -> list[str] | None:
        """Run pip and show a line for each package; return its output when it failed."""
        lines: list[str] = []
        found = 0
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=self.root)
        assert process.stdout is not None
        with process, self.log.open("w") as log:
            for raw in _lines_with_pauses(process.stdout):
                if raw is None:
                    progress.tick()
                    continue
                log.write(raw)
                lines.append(raw.rstrip())
                if match := re.match(r"Collecting ([A-Za-z0-9._-]+)", raw):
                    found += 1
                    progress.show(f"fetching package {found}: {match[1]}")
                elif raw.startswith("Installing collected packages:"):
                    progress.show(f"installing {raw.count(',') + 1} packages")
        return lines if process.returncode != 0 else None


def _lines_with_pauses(stream: IO[bytes]) -> Iterator[str | None]:
    """Yield each line of a pipe, and None for each second without one."""
    buffer = b""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while True:
            if not selector.select(timeout=1.0):
                yield None
                continue
            chunk = os.read(stream.fileno(), 65536)
            if not chunk:
                break
            *complete, buffer = (buffer + chunk).split(b"\n")
            for line in complete:
                yield line.decode(errors="replace") + "\n"
    if buffer:
        yield buffer.decode(errors="replace") + "\n"


def _explain_os_error(error: OSError, folder: Path) -> str:
    if error.errno == errno.ENOSPC:
        return f"the disk is full: {folder} needs about 400 MB; free some space and run the same command again"
    return f"can't write {error.filename or folder}: {error.strerror}"


def _explain_venv(output: str, folder: Path) -> str:
    if FULL_DISK in output:
        return _explain_os_error(OSError(errno.ENOSPC, ""), folder)
    if "ensurepip" in output or "No module named venv" in output:
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        return f"this Python has no venv module: install it (Debian, Ubuntu: apt install python{version}-venv)"
    last = [line for line in output.splitlines() if line.strip()]
    return f"can't make {folder}: {last[-1].strip() if last else 'python -m venv failed'}"


def _explain_pip(lines: list[str], log: Path) -> str:
    text = "\n".join(lines)
    if FULL_DISK in text:
        return _explain_os_error(OSError(errno.ENOSPC, ""), log.parent)
    errors = [line for line in lines if line.startswith("ERROR:")]
    if NETWORK.search(text):
        return f"no connection to the package index: check the network or pip's settings, then run again (log: {log})"
    reason = errors[-1].removeprefix("ERROR:").strip() if errors else (lines[-1] if lines else "pip gave no output")
    return f"pip could not install the requirements: {reason} (log: {log})"
