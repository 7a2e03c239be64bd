"""Style sheets and scripts that all pages share, as files of the package, and the hashes by which a page allows them.

tokens.css       colours of both themes, type scale, spacing
elements.css     text, links, buttons, fields, tables
components.css   cards, bars, charts and what else occurs on several pages
theme.js         light or dark, as the system says or as chosen
"""

import base64
import hashlib
from functools import cache
from importlib.resources import files

STYLES = ("tokens.css", "elements.css", "components.css")


@cache
def read_asset(name: str, package: str = __name__) -> str:
    """Return a style sheet, a script or a template that is a file of a package.

    >>> "color-scheme" in read_asset("tokens.css")
    True
    """
    return files(package).joinpath(name).read_text(encoding="utf-8")


def shared_style() -> str:
    """Return the style sheet of all pages.

    >>> shared_style().startswith(read_asset("tokens.css"))
    True
    """
    return "\n".join(map(read_asset, STYLES))


def source_hash(text: str) -> str:
    """Return the expression by which a content security policy allows exactly this inline style or script.

    >>> source_hash("")
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    """
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def hashed_policy(style: str, scripts: tuple[str, ...]) -> str:
    """Return a content security policy that allows one inline style, these inline scripts, and nothing else.

    >>> hashed_policy("", ()).split("; ")[:2]
    ["default-src 'none'", "style-src 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"]
    """
    allowed = " ".join(map(source_hash, scripts)) or "'none'"
    return (
        f"default-src 'none'; style-src {source_hash(style)}; script-src {allowed}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
