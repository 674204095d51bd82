"""Error replies of the proxy, in the shape that OpenAI's clients read."""

from collections.abc import Mapping

from memsys.errors import BudgetSpentError, MemsysError
from memsys.llm.refusals import ContextLengthError, RequestRefusedError
from memsys.vocabulary import Json

#: Tells OpenAI's clients not to send a request again: what can be corrected by that was tried here already.
FINAL: Mapping[str, str] = {"x-should-retry": "false"}


class RefusedRequestError(Exception):
    """A request that cannot be served as it is.

    Attributes:
        status: of the HTTP reply.
        param: field of the request, where one is wrong.
        code: OpenAI's word for the problem.
    """

    def __init__(self, message: str, *, status: int = 400, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status, self.param, self.code = status, param, code


def error_body(message: str, status: int, param: str | None = None, code: str | None = None) -> dict[str, Json]:
    """Return the JSON of an error."""
    kind = "invalid_request_error" if status < 429 else "insufficient_quota" if status == 429 else "api_error"
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def status_and_code(error: MemsysError) -> tuple[int, str | None]:
    """Return the HTTP status and OpenAI's code for an error of ours."""
    if isinstance(error, BudgetSpentError):
        return 429, "insufficient_quota"
    if isinstance(error, ContextLengthError) or isinstance(error.__cause__, ContextLengthError):
        return 400, "context_length_exceeded"
    if isinstance(error, RequestRefusedError):
        return 400, None
    return 502, None
