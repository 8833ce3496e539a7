"""The lake as Athena sees it: three tables whose partitions follow from their names, a workgroup
that bounds what a query may cost, and saved queries."""

from typing import Final

from aws_cdk import Aws, Duration
from aws_cdk import aws_athena as athena
from aws_cdk import aws_glue as glue
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from cdk.bucket import private_bucket
from cdk.lake_queries import SAVED
from cdk.settings import LakeSettings, StageSettings
from functions.core import keys
from functions.core.lake import TABLES, Column, Kind, Table

PARTITIONS: Final = ("tenant_id", "day")
RESULTS_KEPT: Final = Duration.days(7)

_GB: Final = 10**9
_FIRST_DAY: Final = "2020-01-01"
"""Athena looks at no day before it: recorded runs of past years may be sent, too."""
_ATHENA_TYPES: Final[dict[Kind, str]] = {
    "VARCHAR": "string",
    "BIGINT": "bigint",
    "DECIMAL(38,18)": "decimal(38,18)",
    "DOUBLE": "double",
    "TIMESTAMP": "timestamp",
    "VARCHAR[]": "array<string>",
}


class LakeCatalog(Construct):
    """No crawler and no partition is ever added: nothing here runs or has to be kept up to date."""

    def __init__(
        self, scope: Construct, settings: StageSettings, lake: LakeSettings, bucket: s3.Bucket
    ) -> None:
        super().__init__(scope, "Catalog")
        name = f"{settings.prefix}_lake".replace("-", "_")
        database = glue.CfnDatabase(
            self,
            "Database",
            catalog_id=Aws.ACCOUNT_ID,
            database_input=glue.CfnDatabase.DatabaseInputProperty(
                name=name, description=f"runtally {settings.stage}: ended runs"
            ),
        )
        for table in TABLES:
            self._add_table(table, database, bucket)
        # Of its own: where files are locked, results would be, too.
        results = private_bucket(
            self, "Results", settings, RESULTS_KEPT, versioned=False, key=bucket.encryption_key
        )
        answers = f"s3://{results.bucket_name}/athena/"
        workgroup = self._add_workgroup(settings, lake, answers, bucket.encryption_key)
        for each in SAVED:
            athena.CfnNamedQuery(
                self,
                each.name.title().replace(" ", ""),
                name=each.name,
                description=each.about,
                database=database.ref,
                query_string=each.text,
                work_group=workgroup.ref,
            )
        self.outputs = {
            "LakeDatabase": name,
            "LakeWorkgroup": workgroup.name,
            "LakeResults": answers,
        }

    def _add_table(self, table: Table, database: glue.CfnDatabase, bucket: s3.Bucket) -> None:
        location = f"s3://{bucket.bucket_name}/{keys.LAKE_OBJECTS}{table.name}/"
        columns = {column.name: column for column in table.columns}
        glue.CfnTable(
            self,
            table.name.title(),
            catalog_id=Aws.ACCOUNT_ID,
            database_name=database.ref,
            table_input=glue.CfnTable.TableInputProperty(
                name=table.name,
                table_type="EXTERNAL_TABLE",
                partition_keys=[_column(columns.pop(name)) for name in PARTITIONS],
                storage_descriptor=glue.CfnTable.StorageDescriptorProperty(
                    location=location,
                    columns=[_column(column) for column in columns.values()],
                    input_format="org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
                    output_format="org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
                    serde_info=glue.CfnTable.SerdeInfoProperty(
                        serialization_library=(
                            "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
                        )
                    ),
                ),
                parameters={
                    "classification": "parquet",
                    "EXTERNAL": "TRUE",
                    "projection.enabled": "true",
                    # Any tenant, one at a time: its id has to stand in the query.
                    "projection.tenant_id.type": "injected",
                    "projection.day.type": "date",
                    "projection.day.format": "yyyy-MM-dd",
                    "projection.day.interval": "1",
                    "projection.day.interval.unit": "DAYS",
                    "projection.day.range": f"{_FIRST_DAY},NOW+1DAYS",
                    "storage.location.template": location
                    + "".join(f"{name}=${{{name}}}/" for name in PARTITIONS),
                },
            ),
        )

    def _add_workgroup(
        self, settings: StageSettings, lake: LakeSettings, answers: str, key: kms.IKey | None
    ) -> athena.CfnWorkGroup:
        workgroup = athena.CfnWorkGroup
        return workgroup(
            self,
            "Workgroup",
            name=f"{settings.prefix}-lake",
            description=f"runtally {settings.stage}: queries of the lake",
            recursive_delete_option=True,  # with what was asked, or the stack could not go
            work_group_configuration=workgroup.WorkGroupConfigurationProperty(
                enforce_work_group_configuration=True,
                bytes_scanned_cutoff_per_query=lake.athena_scan_limit_gb * _GB,
                publish_cloud_watch_metrics_enabled=False,
                engine_version=workgroup.EngineVersionProperty(
                    selected_engine_version="Athena engine version 3"
                ),
                result_configuration=workgroup.ResultConfigurationProperty(
                    output_location=answers,
                    expected_bucket_owner=Aws.ACCOUNT_ID,
                    encryption_configuration=workgroup.EncryptionConfigurationProperty(
                        encryption_option="SSE_KMS" if key else "SSE_S3",
                        kms_key=key.key_arn if key else None,
                    ),
                ),
            ),
        )


def _column(column: Column) -> glue.CfnTable.ColumnProperty:
    return glue.CfnTable.ColumnProperty(
        name=column.name, type=_ATHENA_TYPES[column.kind], comment=column.about or None
    )
