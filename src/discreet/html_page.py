"""HTML pages with a strict content security policy."""

from html import escape

NO_EXTERNAL_CONTENT = "default-src 'none'; style-src 'unsafe-inline'"
INLINE_IMAGES_ONLY = f"{NO_EXTERNAL_CONTENT}; img-src data:"


def html_document(title: str, style: str, body: str, *, content_policy: str = NO_EXTERNAL_CONTENT) -> str:
    """Return an HTML document; the title is escaped here, while the body must be escaped already.

    >>> "<title>a &amp; b</title>" in html_document("a & b", "", "<p>c</p>")
    True
    """
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{content_policy}">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )
