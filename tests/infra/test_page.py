"""The page's folder: built when something changed, small, and fit for its strict headers."""

import gzip
import json
import re
from pathlib import Path

import pytest

from cdk.page import MAX_GZIPPED, NOT_LOADED, PageBuildError, build_page, gzipped_size

# Stands in for Vite: empties its folder, writes what it was made from, and counts.
BUILD_JS = """
const fs = require("node:fs");
const out = process.argv[2].replace("--outDir=", "");
fs.rmSync(out, { recursive: true, force: true });
fs.mkdirSync(out);
fs.copyFileSync("source.txt", `${out}/index.html`);
fs.appendFileSync("../builds.txt", "1");
"""


@pytest.fixture(scope="module")
def built() -> Path:
    return build_page()


@pytest.fixture
def web(tmp_path: Path) -> Path:
    """The sources of a page without packages, which npm installs without a network."""
    folder = tmp_path / "web"
    folder.mkdir()
    package = {"name": "page", "version": "1.0.0"}
    (folder / "package.json").write_text(
        json.dumps({**package, "scripts": {"build": "node build.cjs"}})
    )
    write_lock(folder, "1.0.0")
    (folder / "build.cjs").write_text(BUILD_JS)
    (folder / "source.txt").write_text("first")
    return folder


def write_lock(web: Path, version: str) -> None:
    (web / "package-lock.json").write_text(
        json.dumps(
            {
                "name": "page",
                "version": version,
                "lockfileVersion": 3,
                "requires": True,
                "packages": {"": {"name": "page", "version": version}},
            }
        )
    )


def builds(web: Path) -> int:
    return len((web.parent / "builds.txt").read_text())


def test_it_is_small(built: Path) -> None:
    assert MAX_GZIPPED <= 250_000
    assert 0 < gzipped_size(built) <= MAX_GZIPPED


def test_its_size_is_that_of_all_that_a_browser_may_load(tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    for name in ("index.html", "assets/index.js", NOT_LOADED):
        (tmp_path / name).write_bytes(name.encode() * 1000)
    loaded = (gzip.compress(name.encode() * 1000) for name in ("index.html", "assets/index.js"))
    assert gzipped_size(tmp_path) == sum(map(len, loaded))


def test_names_of_assets_change_with_their_content(built: Path) -> None:
    """They are cached for a year; all else is asked for anew."""
    names = [path.name for path in (built / "assets").iterdir()]
    assert names
    for name in names:
        assert re.fullmatch(r".+-[\w-]{8}\.\w+", name)
    others = {path.name for path in built.iterdir()}
    assert others == {"assets", "index.html", "icon.svg", NOT_LOADED}


def test_it_has_nothing_inline_and_nothing_from_elsewhere(built: Path) -> None:
    """What its Content-Security-Policy would refuse."""
    html = (built / "index.html").read_text()
    assert not re.findall(r"<style|\sstyle=|\son\w+=|<base|<iframe|http-equiv", html)
    assert all("src=" in script for script in re.findall("<script[^>]*>", html))
    for address in re.findall(r'(?:src|href)="([^"]*)"', html):
        assert (built / address).is_file(), address
    for style in built.rglob("*.css"):
        assert not re.findall(r"@import|url\((?!['\"]?data:)", style.read_text())


def test_an_unchanged_page_is_not_built_again(built: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in built.rglob("*")}
    assert build_page() == built
    assert {path: path.stat().st_mtime_ns for path in built.rglob("*")} == before


def test_a_changed_source_is_built(web: Path, tmp_path: Path) -> None:
    into = tmp_path / "build"
    folder = build_page(into, web)
    assert folder == into / "web"
    assert (folder / "index.html").read_text() == "first"
    assert build_page(into, web) == folder
    assert builds(web) == 1
    (web / "source.txt").write_text("other")
    build_page(into, web)
    assert (folder / "index.html").read_text() == "other"
    assert builds(web) == 2


def test_a_package_that_changed_by_itself_is_no_source(web: Path, tmp_path: Path) -> None:
    build_page(tmp_path / "build", web)
    (web / "node_modules" / ".vite").mkdir(parents=True)
    (web / "node_modules" / ".vite" / "cache.js").write_text("")
    build_page(tmp_path / "build", web)
    assert builds(web) == 1


def test_packages_are_installed_anew_only_for_another_lock(web: Path, tmp_path: Path) -> None:
    """`npm ci` removes what is there."""
    build_page(tmp_path / "build", web)
    mark = web / "node_modules" / "mark"
    mark.write_text("")
    (web / "source.txt").write_text("other")
    build_page(tmp_path / "build", web)
    assert mark.exists()
    package = json.loads((web / "package.json").read_text())
    (web / "package.json").write_text(json.dumps(package | {"version": "2.0.0"}))
    write_lock(web, "2.0.0")
    build_page(tmp_path / "build", web)
    assert not mark.exists()


def test_a_build_that_fails_says_what_npm_said_and_is_not_taken_for_done(
    web: Path, tmp_path: Path
) -> None:
    good = (web / "build.cjs").read_text()
    (web / "build.cjs").write_text(good + "console.log('half of it'); process.exit(3)")
    with pytest.raises(PageBuildError, match=r"(?s)`npm run build` failed.*half of it"):
        build_page(tmp_path / "build", web)
    with pytest.raises(PageBuildError, match="npm run build"):
        build_page(tmp_path / "build", web)
    (web / "build.cjs").write_text(good)
    build_page(tmp_path / "build", web)
    build_page(tmp_path / "build", web)
    assert builds(web) == 3


def test_packages_that_cannot_be_installed_are_told_and_tried_again(
    web: Path, tmp_path: Path
) -> None:
    lock = web / "package-lock.json"
    lock.unlink()
    lock.write_text("no JSON")
    for _ in range(2):
        with pytest.raises(PageBuildError, match=r"(?s)`npm ci --include=dev` failed.*npm error"):
            build_page(tmp_path / "build", web)
    assert not (tmp_path / "build" / "web").exists()


def test_without_npm_it_says_where_to_get_it(
    web: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PageBuildError, match="npm was not found"):
        build_page(tmp_path / "build", web)


def test_a_page_that_is_too_large_is_an_error(built: Path) -> None:
    size = gzipped_size(built)
    assert gzipped_size(built, at_most=size) == size
    with pytest.raises(PageBuildError, match="too large"):
        gzipped_size(built, at_most=size - 1)
