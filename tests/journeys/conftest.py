"""Both surfaces and a cluster as processes of their own, and Debian's Chromium to look at them."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import database
from tests.journeys.stage import Stage

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="session")
def chromium() -> str:
    """Where Chromium is; without it these tests are skipped, and fail where all has to be run."""
    if CHROMIUM is None:
        needed = "the browser tests need Debian's package `chromium`"
        if os.environ.get("DUCTOR_TEST_FULL") == "1":
            pytest.fail(needed)
        pytest.skip(needed)
    return CHROMIUM


@pytest.fixture(scope="session")
def stage(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """The processes, for all journeys."""
    folder: Path = tmp_path_factory.mktemp("journey")
    stage = Stage(folder)
    try:
        stage.start()
        yield stage
    finally:
        stage.stop()


@pytest.fixture
def complaints() -> list[str]:
    """What the browser's console reports."""
    return []


@pytest.fixture
def page(stage: Stage, chromium: str, complaints: list[str]) -> Iterator[Any]:
    """A new browser, with one page; what its console reports fails the test."""
    from playwright.sync_api import sync_playwright

    database.touch()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage"])
        context = browser.new_context(viewport={"width": 1200, "height": 800})
        context.set_default_timeout(20_000)
        page = context.new_page()
        page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        yield page
        context.close()
        browser.close()
    assert complaints == []
