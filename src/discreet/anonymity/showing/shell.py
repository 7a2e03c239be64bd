"""The frame of a page that fetches nothing and runs nothing: what a browser may do is said in one place."""

from html import escape

NOTHING_FETCHED = "default-src 'none'; style-src 'unsafe-inline'"
OWN_IMAGES = f"{NOTHING_FETCHED}; img-src data:"


def whole_page(title: str, style: str, body: str, *, allowed: str = NOTHING_FETCHED) -> str:
    """Return a whole page; the title is escaped here, the body must be already.

    >>> "<title>a &amp; b</title>" in whole_page("a & b", "", "<p>c</p>")
    True
    """
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{allowed}">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )
