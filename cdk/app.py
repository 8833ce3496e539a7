"""The CDK app: `uv run npx cdk deploy --all -c stage=dev`.

Context: `stage` (local, dev or prod), `alarm_email` (who is told by e-mail), `coordination_vpc` and
`coordination_subnets` (where workers share a cache; ids, those of subnets with commas between them)
and, to deploy other code than the sources here, `bundle` and `page` (a folder each). Synthesis
reads no credentials, and opens no connection once dependencies and page are built.
"""

from dataclasses import replace
from pathlib import Path

from aws_cdk import App, CliCredentialsStackSynthesizer, Tags, Validations
from cdk_nag import AwsSolutionsChecks

from cdk import bundle
from cdk.acknowledged import acknowledge
from cdk.api_stack import ApiStack
from cdk.bundle import Bundle
from cdk.coordination_stack import CoordinationStack
from cdk.data_stack import DataStack
from cdk.lake_stack import LakeStack
from cdk.observability_stack import ObservabilityStack
from cdk.page import build_page
from cdk.pipeline_stack import PipelineStack
from cdk.settings import CoordinationSettings, StageSettings, settings_of
from cdk.web_stack import WebStack


def add_stacks(app: App, settings: StageSettings) -> None:
    """Add the stacks of a stage, and the checks that they must pass."""
    code: dict[Bundle, Path] = {
        name: _code(app, settings, name) for name in ("functions", settings.api_bundle)
    }
    data = DataStack(app, settings, _synthesizer(settings))
    lake = None
    if settings.lake:
        lake = LakeStack(app, settings, settings.lake, data, _code(app, settings, "lake"))
    pipeline = PipelineStack(
        app, settings, _synthesizer(settings), data, code["functions"], lake=lake
    )
    api = ApiStack(app, settings, _synthesizer(settings), pipeline, code)
    if not settings.is_local:  # where `runtally up` serves the page, and nobody is on call
        WebStack(app, settings, _synthesizer(settings), api, _page(app))
        if settings.coordination:
            CoordinationStack(app, settings, settings.coordination)
        ObservabilityStack(app, settings, pipeline, api)

    if not settings.tls_only:
        for rule in ("S10", "SQS4"):
            acknowledge(app, rule, "The embedded AWS speaks plain HTTP on the loopback interface.")
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    Tags.of(app).add("runtally:stage", settings.stage)


def settings_in(app: App) -> StageSettings:
    """Those of the stage that the context names, with what else the context says.

    Raises ValueError for what cannot be.
    """
    settings = settings_of(app.node.try_get_context("stage"))
    return replace(
        settings,
        alarm_email=app.node.try_get_context("alarm_email") or settings.alarm_email,
        coordination=_coordination(app) or settings.coordination,
    )


def _coordination(app: App) -> CoordinationSettings | None:
    """Both or neither: one without the other is refused as the empty id that it would be."""
    vpc: str = app.node.try_get_context("coordination_vpc") or ""
    subnets: str = app.node.try_get_context("coordination_subnets") or ""
    return CoordinationSettings(vpc, tuple(subnets.split(","))) if vpc or subnets else None


def _synthesizer(settings: StageSettings) -> CliCredentialsStackSynthesizer | None:
    """Where the embedded AWS enforces IAM, it lets nobody assume the roles of CDK's bootstrap."""
    return CliCredentialsStackSynthesizer() if settings.is_local else None


def _code(app: App, settings: StageSettings, name: Bundle) -> Path:
    given: str | None = app.node.try_get_context("bundle")
    return Path(given) if given else bundle.build("local" if settings.is_local else "aws", name)


def _page(app: App) -> Path:
    given: str | None = app.node.try_get_context("page")
    return Path(given) if given else build_page()


if __name__ == "__main__":
    app = App()
    add_stacks(app, settings_in(app))
    app.synth()
