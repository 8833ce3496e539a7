"""What S3 answers, as botocore tells it, and what the object store makes of it."""

from io import BytesIO

import boto3
import pytest
from botocore.response import StreamingBody
from botocore.stub import Stubber

from functions.adapters.s3 import S3ObjectStore
from functions.core.errors import Unavailable


def _stubbed() -> tuple[S3ObjectStore, Stubber]:
    client = boto3.client(
        "s3", region_name="eu-west-1", aws_access_key_id="x", aws_secret_access_key="x"
    )
    stubber = Stubber(client)
    stubber.activate()
    return S3ObjectStore(client, "bucket"), stubber


@pytest.mark.parametrize("code", ["PreconditionFailed", "412"])
def test_an_object_that_is_there_is_read_back_even_if_the_answer_has_no_readable_body(
    code: str,
) -> None:
    """botocore gives the status as the code then."""
    store, s3 = _stubbed()
    s3.add_client_error("put_object", service_error_code=code, http_status_code=412)
    s3.add_response("get_object", {"Body": StreamingBody(BytesIO(b"same"), 4)})
    store.put_object("key", b"same", 1)
    s3.assert_no_pending_responses()


def test_a_conflict_with_a_put_under_way_is_not_an_object_that_is_there() -> None:
    """F11: 409 settles nothing."""
    store, s3 = _stubbed()
    s3.add_client_error(
        "put_object", service_error_code="ConditionalRequestConflict", http_status_code=409
    )
    with pytest.raises(Unavailable, match="ConditionalRequestConflict"):
        store.put_object("key", b"bytes", 1)
