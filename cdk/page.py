"""The Pipeline page, built: static files that any web server can serve.

    python -m cdk.page

Its packages come from web/package-lock.json and are installed anew only when that changed, so that
after the first time a build needs no network.
"""

import gzip
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from cdk.bundle import BUILD, ROOT
from cdk.stamp import Stamp, alone, state_of

WEB: Final = ROOT / "web"
HEADERS: Final = WEB / "headers.json"
"""The headers with which the page is served, wherever it is: JSON, value by name."""

MAX_GZIPPED: Final = 250_000
"""Bytes of all that a browser may ever load of it."""

NOT_LOADED: Final = "licenses.md"

_RECIPE: Final = Path(__file__)
_PACKAGES: Final = "node_modules"


class PageBuildError(Exception):
    """The page could not be built, and which command printed what; or it is too large."""


def build_page(into: Path = BUILD, web: Path = WEB) -> Path:
    """The up-to-date folder `web` in `into`.

    Nothing is touched when no source and no package changed, so that whoever reads the folder at
    the same time is not disturbed; of several builders one works and the others wait. Prints
    nothing. Raises PageBuildError.
    """
    target = into / "web"
    with alone(target):
        sources = sorted(path for path in web.iterdir() if path.name != _PACKAGES)
        page = Stamp(target, state_of(_RECIPE, *sources))
        _install_packages(web)
        if not page.fits():
            with page.renewing():
                _npm(web, "run", "build", "--", f"--outDir={target.resolve()}")
    return target


def gzipped_size(folder: Path, at_most: int = MAX_GZIPPED) -> int:
    """Bytes of all files below a folder that a browser may load, each compressed for itself.

    Raises PageBuildError for more than `at_most`.
    """
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != NOT_LOADED)
    size = sum(len(gzip.compress(file.read_bytes())) for file in files)
    if size > at_most:
        raise PageBuildError(
            f"{folder} is too large: {size / 1e3:.1f} KB gzipped, of {at_most / 1e3:.1f} KB"
        )
    return size


def _install_packages(web: Path) -> None:
    lock = web / "package-lock.json"
    # npm writes it last, so that it is there only when all the rest is. By time, as `make setup`
    # has it: whichever of the two, or of those who run `npm ci` by hand, comes first does it.
    installed = web / _PACKAGES / ".package-lock.json"
    if not installed.exists() or installed.stat().st_mtime_ns < lock.stat().st_mtime_ns:
        # The tools are development dependencies, which NODE_ENV=production would leave out.
        _npm(web, "ci", "--include=dev", "--no-audit", "--no-fund")
        installed.parent.mkdir(exist_ok=True)
        installed.touch()


def _npm(web: Path, *arguments: str) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise PageBuildError(
            "npm was not found; it comes with Node: https://nodejs.org/en/download"
        )
    done = subprocess.run(  # noqa: S603 - fixed arguments
        [npm, *arguments],
        cwd=web,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        command = " ".join(["npm", *arguments[:2]])
        raise PageBuildError(
            f"`{command}` failed (exit code {done.returncode}) in {web}:\n{done.stdout.rstrip()}"
        )


def main() -> None:
    try:
        folder = build_page()
        size = gzipped_size(folder)
    except PageBuildError as error:
        sys.exit(str(error))
    print(f"{folder.relative_to(ROOT)}: {size / 1e3:.1f} KB gzipped")  # noqa: T201 - its output


if __name__ == "__main__":
    main()
