"""What AWS's refusals mean to the person at the terminal, and what to do about them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from botocore import exceptions
from botocore.exceptions import BotoCoreError, ClientError

from functions.core.errors import NewerSchema, Unavailable
from local.commands import LocalStageError

_LOG_IN: Final = (
    "Log in: `aws sso login` or `aws configure`, or choose other credentials with `--profile`."
)
_ALLOW: Final = (
    "The action that AWS names must be allowed to whom it names; or choose another `--profile`."
)
_REACH: Final = "See whether the network is there, and whether the region is right."
_UPDATE: Final = (
    "Update this command line: the stage's table has items of a newer version of runtally."
)
_TRY_AGAIN: Final = "Try again in a moment; nothing is lost by repeating."

_OF_CODES: Final = {
    "AccessDenied": _ALLOW,
    "AccessDeniedException": _ALLOW,
    "UnauthorizedOperation": _ALLOW,
    "AuthFailure": _LOG_IN,
    "ExpiredToken": _LOG_IN,
    "ExpiredTokenException": _LOG_IN,
    "InvalidClientTokenId": _LOG_IN,
    "InvalidAccessKeyId": _LOG_IN,
    "SignatureDoesNotMatch": _LOG_IN,
    "UnrecognizedClientException": _LOG_IN,
    "ResourceNotFoundException": "The stage was deleted, or it is still being deployed.",
}
_OF_KINDS: Final[tuple[tuple[type[BotoCoreError], str], ...]] = (
    (exceptions.ProfileNotFound, "`aws configure list-profiles` names those that there are."),
    (exceptions.NoRegionError, "Name it with `--region`, or in the profile's configuration."),
    (exceptions.NoCredentialsError, _LOG_IN),
    (exceptions.PartialCredentialsError, _LOG_IN),
    (exceptions.CredentialRetrievalError, _LOG_IN),
    (exceptions.SSOError, _LOG_IN),
    (exceptions.LoginError, _LOG_IN),
    (exceptions.TokenRetrievalError, _LOG_IN),
    (exceptions.ConnectionError, _REACH),
    (exceptions.HTTPClientError, _REACH),
)


@contextmanager
def explaining() -> Iterator[None]:
    """Raise LocalStageError, with what to do, for what AWS refuses within the `with` block."""
    try:
        yield
    except Unavailable as failure:
        raise explained(failure.__cause__ or failure) from None
    except (BotoCoreError, ClientError) as error:
        raise explained(error) from None


def explained(error: BaseException) -> LocalStageError:
    if isinstance(error, NewerSchema):
        return LocalStageError(f"{error}.", _UPDATE)
    return LocalStageError(f"AWS: {error}", _advice_for(error))


def _advice_for(error: BaseException) -> str:
    if isinstance(error, ClientError):
        return _OF_CODES.get(error.response["Error"]["Code"], _TRY_AGAIN)
    return next((advice for kind, advice in _OF_KINDS if isinstance(error, kind)), _TRY_AGAIN)
