"""The command line's way to a stage: the one that `runtally up` left running, or a deployed one."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Annotated, Any, Final

from boto3.session import Session
from botocore.exceptions import ClientError
from cyclopts import Parameter

from local.aws_errors import explained, explaining
from local.cloud import Account, Cloud
from local.commands import LocalStageError
from local.running import find_running
from local.stage import Running, Stage

LOCAL: Final = "local"
STAGE_VARIABLE: Final = "RUNTALLY_STAGE"
_PARTS: Final = ("data", "pipeline", "api")


class NoStack(LocalStageError):  # noqa: N818 - the fact
    """It is not there, whatever the reason; a request that is refused is another matter."""


def connect(
    stage: str | None,
    profile: str | None,
    region: str | None,
    *,
    left_running: Callable[[], Running | None] = find_running,
) -> Stage:
    """The stage of that name, or of RUNTALLY_STAGE, or the local one; the caller closes it.

    `profile` and `region` choose the account of a deployed stage, as they do for AWS's own command
    line. Raises LocalStageError, which says what to do.
    """
    name = stage or os.environ.get(STAGE_VARIABLE) or LOCAL
    if name == LOCAL:
        running = left_running()
        if running is None:
            advice = "Start one with `runtally up`, or name a deployed one with `--stage`."
            raise LocalStageError("There is no stage up.", advice)
        return running.stage
    with explaining():
        return find_deployed(name, Account(Session(profile_name=profile, region_name=region)))


def find_deployed(name: str, cloud: Cloud) -> Stage:
    """The stage as the outputs of its CloudFormation stacks describe it."""
    outputs: dict[str, str] = {}
    with closing(cloud.client("cloudformation")) as cloudformation:
        for part in _PARTS:
            outputs |= _outputs_of(name, part, cloudformation)
        with suppress(NoStack):
            outputs |= _outputs_of(name, "lake", cloudformation)
    try:
        return Stage.of_outputs(outputs, cloud)
    except KeyError as missing:
        failed = f"The stacks of the stage {name} have no output {missing}."
        raise LocalStageError(failed, _deploy(name)) from None


def lake_of_stage(name: str, cloud: Cloud) -> str:
    """The address of the stage's lake on S3. Raises LocalStageError, also for a stage without."""
    with closing(cloud.client("cloudformation")) as cloudformation:
        try:
            return _outputs_of(name, "lake", cloudformation)["LakeUrl"]
        except (NoStack, KeyError):
            advice = "`runtally export` writes files to ask instead: `runtally query --in FOLDER`."
            raise LocalStageError(f"The stage {name} has no lake.", advice) from None


def _outputs_of(name: str, part: str, cloudformation: Any) -> dict[str, str]:
    stack = f"runtally-{name}-{part}"
    try:
        (described,) = cloudformation.describe_stacks(StackName=stack)["Stacks"]
    except ClientError as error:
        # For a request that names nothing but a stack, it means that there is none.
        if error.response["Error"]["Code"] != "ValidationError":
            raise explained(error) from None
        failed = f"There is no stack {stack} in {cloudformation.meta.region_name}."
        advice = f"If it is elsewhere, say so with `--region` or `--profile`. {_deploy(name)}"
        raise NoStack(failed, advice) from None
    return {output["OutputKey"]: output["OutputValue"] for output in described.get("Outputs", ())}


def _deploy(name: str) -> str:
    return f"Deploy it with `uv run npx cdk deploy --all -c stage={name}`."


Connect = Annotated[Callable[[str | None, str | None, str | None], Stage], Parameter(parse=False)]
"""A command's own parameter for `connect`, which no argument sets."""


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class StageOptions:
    """What all commands share that speak to a stage."""

    stage: Annotated[
        str | None,
        Parameter(
            help="`local`, which `runtally up` leaves running, or the name of a deployed one.",
            env_var=STAGE_VARIABLE,
            show_default=lambda _: LOCAL,
        ),
    ] = None
    profile: Annotated[
        str | None, Parameter(help="Profile of the AWS configuration, for a deployed stage.")
    ] = None
    region: Annotated[
        str | None, Parameter(help="AWS region, for a deployed stage; else the profile's.")
    ] = None

    as_json: Annotated[bool, Parameter(name="--json", help="Print JSON, for programs.")] = False

    @contextmanager
    def connected(self, connect: Connect) -> Iterator[Stage]:
        """The stage for the length of a `with` block; what AWS refuses in it is explained."""
        with closing(connect(self.stage, self.profile, self.region)) as stage, explaining():
            yield stage
