"""What a column's name suggests (a person, a device, a key); used for hints only."""

import re
from typing import Literal

_WORD_BREAK = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")
_PERSON_NOUN = re.compile(
    r"(?:^|_)(user|person|patient|customer|client|member|employee|student|visitor|subscriber|subject|driver"
    r"|participant|resident|citizen|household|respondent|account|pid)s?(?:$|_)"
)
_PATTERNS = {
    "a person": re.compile(
        r"(?:^|_)(?:user|username|person|people|patient|customer|client|member|employee|student|visitor|subscriber"
        r"|subject|driver|participant|resident|citizen|household|respondent|pupil|tenant|voter|pid"
        r"|account|author|owner|login|e_?mail|phone|mobile|ssn|passport|iban|surname|address|ip)s?(?:$|_)"
        r"|(?:first|last|full|family|maiden|given)_?name"
    ),
    "a device": re.compile(  # or a browser or visit, of which a person may have several
        r"(?:^|_)(?:cookie|device|session|browser|mac|ip|imei|idfa|gaid|visit|request|token|phone|sim|client_?ip)s?"
        r"(?:$|_)"
    ),
    "a key": re.compile(r"(?:^|_)(?:id|uuid|guid|key|no|nr)$"),
    "a latitude": re.compile(r"(?:^|_)lat(?:itude)?(?:$|_)"),
    "a longitude": re.compile(r"(?:^|_)(?:lon|lng|long|longitude)(?:$|_)"),
}
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")


def snake_case(name: str) -> str:
    """Convert a name to snake case.

    >>> snake_case("userId"), snake_case("User ID")
    ('user_id', 'user_id')
    """
    return _WORD_BREAK.sub("_", name).lower()


def person_noun(name: str) -> str | None:
    """Return the noun for a person in a name, if any: patient_id → patient."""
    match = _PERSON_NOUN.search(snake_case(name))
    return ("person" if match[1] == "pid" else match[1]) if match else None


def suggests(name: str, kind: Literal["a person", "a device", "a key", "a latitude", "a longitude"]) -> bool:
    """Whether a name suggests such a thing, or something that identifies it.

    >>> suggests("patientId", "a person"), suggests("patientId", "a key"), suggests("lat", "a longitude")
    (True, True, False)
    """
    return bool(_PATTERNS[kind].search(snake_case(name)))


def is_email(value: object) -> bool:
    """Whether a value is an e-mail address."""
    return isinstance(value, str) and bool(_EMAIL.fullmatch(value))


def entity_stem(name: str) -> str:
    """Return the noun that a key or table name is about: "venue" for venue_id, venue and venues.

    >>> entity_stem("venue_id"), entity_stem("Venues"), entity_stem("categories"), entity_stem("id")
    ('venue', 'venue', 'category', '')
    """
    without_suffix = _PATTERNS["a key"].sub("", snake_case(name)).strip("_")
    if without_suffix.endswith("ies"):
        return f"{without_suffix[:-3]}y"
    return without_suffix[:-1] if without_suffix.endswith("s") and not without_suffix.endswith("ss") else without_suffix
