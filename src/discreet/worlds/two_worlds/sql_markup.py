"""SQL as HTML, with keywords, texts and numbers marked."""

import re
from html import escape

_TOKENS = re.compile(
    r"(?P<t>'(?:[^']|'')*')|(?P<n>\b\d+(?:\.\d+)?\b)"
    r"|(?P<k>\b(?:SELECT|FROM|WHERE|GROUP BY|ORDER BY|HAVING|AND|OR|NOT|AS|COUNT|SUM|AVG|JOIN|ON|IN|BETWEEN|LIMIT)\b)"
)


def sql_markup(sql: str) -> str:
    """Return SQL as escaped HTML with marked tokens.

    >>> sql_markup("SELECT 1 < 'a'")
    '<span class="k">SELECT</span> <span class="n">1</span> &lt; <span class="t">&#x27;a&#x27;</span>'
    """
    parts, end = [], 0
    for token in _TOKENS.finditer(sql):
        parts += [escape(sql[end : token.start()]), f'<span class="{token.lastgroup}">{escape(token[0])}</span>']
        end = token.end()
    return "".join([*parts, escape(sql[end:])])
