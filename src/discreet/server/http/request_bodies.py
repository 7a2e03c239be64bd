"""What clients send, with examples for OpenAPI."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt, StrictStr, StringConstraints
from pydantic.config import JsonDict

from discreet.server.requests import QueryRequest

MAX_SQL = 100_000
_EXAMPLE: JsonDict = {"sql": "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", "epsilon": "0.1"}
ShortText = Annotated[StrictStr, StringConstraints(max_length=200)]
Amount = Annotated[StrictStr, StringConstraints(max_length=100)] | StrictInt | StrictFloat


class QuestionBody(BaseModel):
    """A query, its cost or margin, and its contribution bounds; numbers may be texts such as "1/10", which are exact.

    >>> QuestionBody(sql="SELECT COUNT(*) AS n FROM visits", epsilon="1/10").to_request(None).epsilon
    '1/10'
    """

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [_EXAMPLE]})

    sql: Annotated[StrictStr, StringConstraints(max_length=MAX_SQL)]
    epsilon: Amount | None = Field(None, description="The privacy cost of the answer.")
    rho: Amount | None = Field(None, description="The cost in rho, for a budget with a delta.")
    margin: Amount | dict[str, Amount] | None = Field(
        None, description="The largest margin of error instead of a cost: one for all columns, or one per column."
    )
    key: ShortText | None = Field(None, description="An idempotency key; or the header Idempotency-Key.")
    groups: StrictInt | Literal["auto"] | None = Field(None, description="Maximum number of groups per unit.")
    rows: StrictInt | Literal["auto"] | None = Field(None, description="Maximum number of rows per unit and group.")
    purpose: ShortText | None = Field(None, description="What the answer is for; some policies require it.")

    def to_request(self, header_key: str | None) -> QueryRequest:
        """Return the request; a key in the body takes precedence over one in a header."""
        return QueryRequest(
            self.sql,
            epsilon=self.epsilon,
            rho=self.rho,
            margin=self.margin,
            key=self.key if header_key is None else header_key,
            groups=self.groups,
            rows=self.rows,
            purpose=self.purpose,
        )


class PlanBody(BaseModel):
    """A publication plan, as the text of its TOML file."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "plan": '[release]\nname = "Visits"\nepsilon = 1\n[tables.by_ward]\n'
                    'sql = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"\n'
                }
            ]
        },
    )

    plan: Annotated[StrictStr, StringConstraints(max_length=MAX_SQL)]
