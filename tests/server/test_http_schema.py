"""Whatever clients send, the HTTP interface answers as its OpenAPI document says."""

from contextlib import suppress

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance
from served import Serving, open_service

from discreet.server.people import Role

pytestmark = pytest.mark.long
ROLES = {"ana": Role.ANALYST, "audit office": Role.AUDITOR, "boss": Role.OWNER}
GENERATED = settings(
    database=None,
    max_examples=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)
# A text that fits the schema need not be SQL, and unknown parameters are ignored, as HTTP does.
NOT_MEANT = [positive_data_acceptance, negative_data_rejection]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    opened = Serving(open_service(folder, ledger="ledger.sqlite", requests_per_minute=10**6, failures_per_minute=10**6))
    yield opened
    opened.close()


def try_operation(operation, mode, tokens):
    """Send generated requests with each token, and return how many."""
    statuses = []

    @GENERATED
    @given(case=operation.as_strategy(generation_mode=mode))
    def send(case):
        for token in tokens:
            response = case.call(headers={"Authorization": token})
            case.validate_response(response, excluded_checks=NOT_MEANT)
            statuses.append(response.status_code)

    with suppress(Unsatisfiable):  # without parameters there is nothing to get wrong
        send()
    print(operation.label, {status: statuses.count(status) for status in sorted(set(statuses))})
    return len(statuses)


@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode))
def test_every_response_is_as_documented(server, mode):
    tokens = [server.client(name, role).headers["Authorization"] for name, role in ROLES.items()]
    document = schemathesis.openapi.from_url(f"{server.url}/api/v1/openapi.json")
    tried = sum(try_operation(found.ok(), mode, tokens) for found in document.get_all_operations())
    assert tried > 500
    assert server.anonymous().get("/health").status_code == 200
