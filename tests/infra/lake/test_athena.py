"""The lake as Athena sees it, and what a query may cost."""

from pathlib import Path

from cdk.lake_catalog import PARTITIONS
from cdk.lake_queries import SAVED
from cdk.settings import LakeSettings
from functions.core import lake, lake_ports
from functions.core.keys import RunRef
from tests.infra.assembly import Properties, Template, resources_of
from tests.infra.lake.stacks import alone, only, plain, text


def tables(stack: Template) -> dict[str, Properties]:
    made = resources_of(stack, "AWS::Glue::Table").values()
    return {each["TableInput"]["Name"]: each["TableInput"] for each in made}


def test_the_tables_have_the_columns_that_are_written(stack: Template) -> None:
    assert set(tables(stack)) == {table.name for table in lake.TABLES}
    for table in lake.TABLES:
        made = tables(stack)[table.name]
        columns = made["StorageDescriptor"]["Columns"]
        assert [c["Name"] for c in made["PartitionKeys"]] == list(PARTITIONS)
        assert [*PARTITIONS, *(c["Name"] for c in columns)] == [c.name for c in table.columns]
    calls = {c["Name"]: c["Type"] for c in tables(stack)["calls"]["StorageDescriptor"]["Columns"]}
    assert calls["cost_usd"] == "decimal(38,18)"
    assert calls["started_at"] == "timestamp"
    assert calls["started_ns"] == "bigint"
    phases = tables(stack)["phases"]["StorageDescriptor"]["Columns"]
    assert {c["Name"]: c["Type"] for c in phases}["agents"] == "array<string>"


def test_partitions_follow_from_the_keys_that_are_written(stack: Template) -> None:
    """Without a crawler: the template, filled in, is where the function puts a run's file."""
    run_ref, day = RunRef("acme", "run-1"), "2026-11-30"
    for table in lake.TABLES:
        told = tables(stack)[table.name]["Parameters"]
        assert told["projection.enabled"] == "true"
        assert told["projection.tenant_id.type"] == "injected"
        assert (told["projection.day.type"], told["projection.day.format"]) == (
            "date",
            "yyyy-MM-dd",
        )
        folder = text(told["storage.location.template"]).partition("/lake/")[2]
        filled = folder.replace("${tenant_id}", "acme").replace("${day}", day)
        key = lake_ports.object_of_run(table, run_ref, day)
        assert key == f"lake/{filled}run-1.parquet"


def test_nobody_gets_past_what_the_workgroup_says(stack: Template) -> None:
    workgroup = only(stack, "AWS::Athena::WorkGroup")
    assert workgroup["Name"] == "runtally-dev-lake"
    configuration = workgroup["WorkGroupConfiguration"]
    assert configuration["EnforceWorkGroupConfiguration"] is True
    assert configuration["BytesScannedCutoffPerQuery"] == 10 * 10**9
    results = configuration["ResultConfiguration"]
    assert "CatalogResults" in text(results["OutputLocation"])
    option = "SSE_S3" if stack is plain() else "SSE_KMS"
    assert results["EncryptionConfiguration"]["EncryptionOption"] == option
    (rule,) = only(stack, "AWS::S3::Bucket", "Catalog/Results")["LifecycleConfiguration"]["Rules"]
    assert rule["ExpirationInDays"] == 7


def test_how_much_a_query_may_scan_is_a_setting(tmp_path: Path) -> None:
    resources = alone(tmp_path, LakeSettings(30, athena_scan_limit_gb=500))["Resources"].values()
    (workgroup,) = (each for each in resources if each["Type"] == "AWS::Athena::WorkGroup")
    configuration = workgroup["Properties"]["WorkGroupConfiguration"]
    assert configuration["BytesScannedCutoffPerQuery"] == 500 * 10**9


def test_saved_queries_name_a_tenant_and_days_and_columns_that_there_are(stack: Template) -> None:
    saved = resources_of(stack, "AWS::Athena::NamedQuery").values()
    assert {each["Name"] for each in saved} == {each.name for each in SAVED}
    for each in SAVED:
        assert "tenant_id = 'TENANT'" in each.text
        assert "day >= " in each.text
