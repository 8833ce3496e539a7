"""The folder that becomes every function's code."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cdk import bundle
from cdk.bundle import Bundle, size_of

ALLOWED = {
    "aws_lambda_powertools",
    "functions",
    "jmespath",
    "msgspec",
    "runtally",
    "typing_extensions.py",
}

OF_LAMBDAS_RUNTIME = ("boto3", "botocore", "dateutil", "s3transfer", "six", "urllib3")


@pytest.fixture(scope="module")
def folder() -> Path:
    return bundle.build("local")


@pytest.fixture(scope="module")
def api_folder() -> Path:
    return bundle.build("local", "api")


def test_the_apis_holds_what_reads_otlp_besides(folder: Path, api_folder: Path) -> None:
    assert _names_in(api_folder) == ALLOWED | {"google", "opentelemetry"}
    assert size_of(api_folder) <= size_of(folder) + 3_500_000


def test_the_one_that_redacts_holds_the_managed_rules_besides(api_folder: Path) -> None:
    redacting = bundle.build("local", "redacting-api")
    assert _names_in(redacting) - _names_in(api_folder) == {
        "_yaml",
        "certifi",
        "charset_normalizer",
        "detect_secrets",
        "idna",
        "requests",
        "stdnum",
        "urllib3",
        "yaml",
    }
    assert size_of(redacting) <= size_of(api_folder) + 11_000_000


@pytest.fixture(scope="module")
def lake_folder() -> Path:
    return bundle.build("local", "lake")


def test_the_lakes_alone_holds_duckdb(folder: Path, lake_folder: Path) -> None:
    """Lambda takes 250 MB, unpacked."""
    besides = _names_in(lake_folder) - ALLOWED
    assert _names_in(lake_folder) > ALLOWED
    assert all("duckdb" in name for name in besides), besides
    # DuckDB asks for its own version; nobody else does.
    (metadata,) = lake_folder.glob("*.dist-info/*")
    assert metadata.name == "METADATA"
    assert size_of(lake_folder) <= 120_000_000
    for each in ("functions", "api", "redacting-api"):
        assert "duckdb" not in bundle.requirements(each)


@pytest.mark.parametrize("bundled", ["functions", "api"])
def test_neither_duckdb_nor_arrow_is_imported_where_runs_are_recorded_and_read(
    bundled: Bundle,
) -> None:
    """Also where they could be, as here."""
    started = ", ".join(bundle.STARTED[bundled])
    program = f"import sys, {started}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run(  # noqa: S603 - fixed arguments
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=bundle.ROOT
    )
    imported = set(done.stdout.split())
    assert {"functions", "msgspec"} < imported
    assert not {name for name in imported if "duckdb" in name or "arrow" in name}


def test_it_holds_our_code_and_what_that_imports_and_nothing_else(folder: Path) -> None:
    assert _names_in(folder) == ALLOWED


def test_it_stays_small(folder: Path) -> None:
    assert size_of(folder) <= 5_000_000


def test_it_holds_no_leftovers(folder: Path) -> None:
    names = {path.name for path in folder.rglob("*")}
    assert not {"tests", "boto3", "botocore"} & names
    assert not [name for name in names if name.endswith((".dist-info", ".js", ".css"))]


def test_its_bytecode_holds_whatever_time_an_archive_gives_its_source(folder: Path) -> None:
    """PEP 552: bits 0 and 1 of the flags say that it goes by a hash, and that none is checked."""
    compiled = list(folder.rglob("*.pyc"))
    assert compiled
    for file in compiled:
        assert file.read_bytes()[4:8] == (0b01).to_bytes(4, "little")


def test_the_same_sources_give_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    """Or each build would deploy anew."""
    again = bundle.build("local", "functions", tmp_path)
    assert _contents_of(again) == _contents_of(folder)


def test_what_goes_to_aws_is_compiled_for_arm64() -> None:
    """Byte 18 of an ELF file says for which machine: 0xB7 is AArch64."""
    libraries = [
        library
        for bundled in ("api", "lake")
        for library in bundle.build("aws", bundled).rglob("*.so")
    ]
    assert libraries
    for library in libraries:
        assert library.read_bytes()[18] == 0xB7


def test_dependencies_are_locked_with_hashes_and_without_boto3() -> None:
    lines = [
        line
        for line in bundle.requirements().replace("\\\n", " ").splitlines()
        if line and not line.startswith("#")
    ]
    names = {line.partition("==")[0] for line in lines}
    assert names == {"aws-lambda-powertools", "jmespath", "msgspec", "typing-extensions"}
    assert all("--hash=sha256:" in line for line in lines)


@pytest.mark.parametrize(
    ("module", "bundled"),
    [
        ("functions.ingest.handler", "functions"),
        ("functions.summarize.handler", "functions"),
        ("functions.summarize.recount_handler", "functions"),
        ("functions.sweep.handler", "functions"),
        ("functions.erase.handler", "functions"),
        ("functions.api.dead_jobs_handler", "functions"),
        ("functions.api.handler", "api"),
        ("runtally.otel.otlp_protobuf", "api"),
        ("functions.api.handler, runtally.managed_rules", "redacting-api"),
        ("functions.lake.handler", "lake"),
    ],
)
def test_every_entry_point_starts_from_it_alone(
    module: str, bundled: Bundle, tmp_path: Path
) -> None:
    """With the standard library and boto3, which Lambda's runtime brings, and nothing else; and
    compiles nothing."""
    folder = bundle.build("local", bundled)
    for name in OF_LAMBDAS_RUNTIME:
        origin = importlib.util.find_spec(name)
        assert origin is not None
        assert origin.origin is not None
        file = Path(origin.origin)
        brought = file.parent if file.name == "__init__.py" else file
        (tmp_path / brought.name).symlink_to(brought)
    program = (
        f"import sys; sys.path[:0] = [{str(folder)!r}, {str(tmp_path)!r}]\n"
        f"import os, {module}\n"
        "loaded = [one.__spec__ for one in sys.modules.values() if one.__spec__]\n"
        f"ours = [one for one in loaded if (one.origin or '').startswith({str(folder)!r})]\n"
        "print('site' in sys.modules, len(ours) > 50, [one.name for one in ours"
        " if one.origin.endswith('.py') and not os.path.exists(one.cached)])"
    )
    done = subprocess.run(  # noqa: S603 - fixed arguments
        [sys.executable, "-I", "-S", "-B", "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("False True []\n", "")


def test_an_unchanged_tree_is_not_built_again(folder: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert bundle.build("local") == folder
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_a_changed_source_is(tmp_path: Path) -> None:
    """And one that is gone is gone there, too. On a copy: others may be reading the real folder."""
    sources = tmp_path / "functions"
    shutil.copytree(bundle.ROOT / "functions", sources)
    built = bundle.build("local", "functions", tmp_path / "build", {"functions": sources})
    (sources / "core" / "keys.py").unlink()
    (sources / "__init__.py").write_text("# changed")
    assert bundle.build("local", "functions", tmp_path / "build", {"functions": sources}) == built
    assert (built / "functions" / "__init__.py").read_text() == "# changed"
    assert not (built / "functions" / "core" / "keys.py").exists()


def _names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"__pycache__"}


def _contents_of(folder: Path) -> dict[Path, bytes]:
    return {
        file.relative_to(folder): file.read_bytes() for file in folder.rglob("*") if file.is_file()
    }
