"""What the name of a column suggests; a name proves nothing, so all of this only leads to questions and comments."""

import re

_SPLIT = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")
_PERSON = re.compile(
    r"(?:^|_)(user|person|patient|customer|client|member|employee|student|visitor|subscriber|subject|driver"
    r"|participant|resident|citizen|household|respondent|account|pid)s?(?:$|_)"
)
_PEOPLE = re.compile(
    r"(?:^|_)(?:user|username|person|people|patient|customer|client|member|employee|student|visitor|subscriber"
    r"|subject|driver|participant|resident|citizen|household|respondent|pupil|tenant|voter|pid"
    r"|account|author|owner|login|e_?mail|phone|mobile|ssn|passport|iban|surname|address|ip)s?(?:$|_)"
    r"|(?:first|last|full|family|maiden|given)_?name"
)
_DEVICE = re.compile(
    r"(?:^|_)(?:cookie|device|session|browser|mac|ip|imei|idfa|gaid|visit|request|token|phone|sim|client_?ip)s?(?:$|_)"
)
_KEY = re.compile(r"(?:^|_)(?:id|uuid|guid|key|no|nr)$")
_LATITUDE = re.compile(r"(?:^|_)lat(?:itude)?(?:$|_)")
_LONGITUDE = re.compile(r"(?:^|_)(?:lon|lng|long|longitude)(?:$|_)")
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")


def words(name: str) -> str:
    """Write userId and "User ID" as user_id.

    >>> words("userId"), words("User ID")
    ('user_id', 'user_id')
    """
    return _SPLIT.sub("_", name).lower()


def person_word(name: str) -> str | None:
    """Return the word for people in a name, if there is one: patient_id → patient."""
    found = _PERSON.search(words(name))
    return ("person" if found[1] == "pid" else found[1]) if found else None


def holds_people(name: str) -> bool:
    """Whether a name looks like one of people, or of what leads to them."""
    return bool(_PEOPLE.search(words(name)))


def is_device(name: str) -> bool:
    """Whether a name looks like one of devices, browsers or visits, of which a person may have several."""
    return bool(_DEVICE.search(words(name)))


def is_key(name: str) -> bool:
    """Whether a name looks like that of an identifier."""
    return bool(_KEY.search(words(name)))


def is_latitude(name: str) -> bool:
    """Whether a name looks like that of a latitude."""
    return bool(_LATITUDE.search(words(name)))


def is_longitude(name: str) -> bool:
    """Whether a name looks like that of a longitude."""
    return bool(_LONGITUDE.search(words(name)))


def is_email(value: object) -> bool:
    """Whether a listed value is somebody's address."""
    return isinstance(value, str) and bool(_EMAIL.fullmatch(value))


def stem(name: str) -> str:
    """Return what a key or a table is about: venue_id, venue and venues are all about a venue.

    >>> stem("venue_id"), stem("Venues"), stem("categories"), stem("id")
    ('venue', 'venue', 'category', '')
    """
    plain = _KEY.sub("", words(name)).strip("_")
    if plain.endswith("ies"):
        return f"{plain[:-3]}y"
    return plain[:-1] if plain.endswith("s") and not plain.endswith("ss") else plain
