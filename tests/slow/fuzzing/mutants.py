"""Golden queries with something changed: words lost, doubled, swapped or replaced, and texts of any size and shape."""

import re

from test_golden import FILES, cases

from fuzzing import dice as words

_TOKENS = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|\w+|\s+|[<>=!|:]+|.", re.DOTALL)
_KEYWORDS = (
    *("SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "OFFSET", "WITH", "AS", "ON", "USING"),
    *("JOIN", "LEFT", "UNION", "ALL", "DISTINCT", "CASE", "WHEN", "THEN", "ELSE", "END", "FILTER", "OVER", "NULL"),
    *("IS", "NOT", "IN", "EXISTS", "LATERAL", "VALUES", "TABLE", "INTERVAL", "CAST", "COLLATE", "WINDOW", "QUALIFY"),
    *("RECURSIVE", "EXPLAIN", "WITHIN", "DIFFERENTIAL_PRIVACY", "OPTIONS", "TABLESAMPLE", "PIVOT", "UNNEST", "ROLLUP"),
)
_LETTERS = (
    *("\0", "\ufeff", "\u202e", "\u200b", "\ud800", "\u0435", "\u0301", "\x1b[31m", "\r", "\u2028", "\uff1b"),
    *("\uff08", "\u0663", "²", "🤦", "--", "/*", "*/", "/*+ x */", "';--", '"', "'", "$$", "$1", ":x", "?", "@v", "#"),
    *("\\", "{", "}", "[", "]", "`", "::", ";", "%%", "~~*", "->>", "@>", "&&", "<->", "=>", ":=", "..", ",,", "()"),
    *("(,)", "*", "+", "!"),
)
_NAME = r"\w*[a-z]\w*"
_LARGE = 1_000_000


def golden():
    """Return every golden query with the name of its policy."""
    texts = [path.read_text() for path in FILES]
    return [(re.match(r"-- policy: (\w+)", text)[1], case.sql.strip()) for text in texts for case in cases(text)]


def mutant(dice, listed):
    """Return a changed query, with the name of its policy."""
    policy, sql = dice.one(listed)
    if dice.often(0.015):
        return policy, _enormous(dice, sql)
    if dice.often(0.05):
        return policy, _nested(dice, sql)
    tokens = _TOKENS.findall(sql)
    others = _TOKENS.findall(dice.one(listed)[1])
    for _ in range(dice.weighed({1: 6, 2: 2, 3: 1, 8: 1})):
        tokens = _changed(dice, tokens, others) or tokens
    return policy, "".join(tokens)


def _changed(dice, tokens, others):
    """Return the tokens with one change."""
    at, other, new = dice.below(len(tokens)), dice.below(len(tokens)), list(tokens)
    how = dice.weighed(
        {"lose": 3, "double": 2, "swap": 3, "name": 5, "literal": 4, "letter": 2, "word": 3, "splice": 2}
    )
    if how == "lose":
        del new[at : at + dice.pick(1, 1, 2, 5)]
    elif how == "double":
        new[at:at] = new[at : at + dice.pick(1, 2, 7)] * dice.pick(1, 1, 2)
    elif how == "swap":
        new[at], new[other] = new[other], new[at]
    elif how == "name":
        names = [token for token in tokens if re.fullmatch(_NAME, token)]
        strange = (*words.STRANGERS, *words.ALIASES, *words.FUNCTIONS, *others)
        new = _replaced(dice, new, _NAME, names if names and dice.often(0.6) else strange)
    elif how == "literal":
        usual, odd = (*words.WHOLES, *words.LETTERS), (*words.HUGE, *words.ODD_LETTERS, *words.ODD_DAYS)
        new = _replaced(dice, new, r"\d+|'.*'", dice.pick(usual, odd))
    elif how == "letter":
        place = dice.below(len(new[at]) + 1)
        new[at] = new[at][:place] + dice.one(_LETTERS) + new[at][place:]
    elif how == "word":
        new[at:at] = [" ", dice.one((*_KEYWORDS, *words.AFTERWARDS)), " "]
    else:
        start = dice.below(len(others))
        new[at : at + dice.below(4)] = others[start : start + 1 + dice.below(12)]
    return new


def _replaced(dice, tokens, shape, choices):
    """Replace one token of a shape, if there is one."""
    places = [at for at, token in enumerate(tokens) if re.fullmatch(shape, token, re.DOTALL)]
    if places:
        tokens[dice.one(places)] = dice.one(choices)
    return tokens


def _nested(dice, sql):
    """Put a query, or a part of one, deep into something."""
    depth = dice.pick(5, 30, 41, 150, 3_000)
    return dice.pick(
        "(" * depth + sql.rstrip(";") + ")" * depth,
        f"SELECT COUNT(*) FROM {'(SELECT * FROM ' * depth}orders{') AS t' * depth}",
        sql.replace("COUNT(*)", "(" * depth + "COUNT(*)" + ")" * depth),
        f"SELECT SUM({'CASE WHEN TRUE THEN ' * depth}1{' END' * depth}) FROM orders",
        f"SELECT COUNT(*) FROM orders WHERE {'NOT ' * depth}paid",
        f"SELECT AVG({'-' * depth}quantity), AVG({'- ' * depth}quantity), AVG({'+' * depth}quantity) FROM orders",
        f"SELECT {'ABS(' * depth}COUNT(*){')' * depth} FROM orders",
        f"SELECT COUNT(*) FROM orders WHERE amount = {'ARRAY[' * depth}1{']' * depth}" + "::INT" * depth,
        f"SELECT COUNT(*) FROM orders WHERE {'user IN (SELECT user FROM orders WHERE ' * depth}paid{')' * depth}",
    )


def _enormous(dice, sql):
    """Make a query as long as a text can be, or nearly as long as one that is read."""
    size = dice.pick(_LARGE, _LARGE // 11, 20_000)
    return dice.pick(
        lambda: sql + " " * size,
        lambda: sql + "--" + "x" * size,
        lambda: sql.replace("SELECT", "SELECT '" + "x" * size + "', ", 1),
        lambda: f"SELECT COUNT(*) FROM orders WHERE quantity IN ({', '.join(map(str, range(size // 8)))})",
        lambda: f"SELECT COUNT(*) FROM orders WHERE {' OR '.join(['quantity = 1'] * (size // 16))}",
        lambda: f"SELECT SUM({' + '.join(['quantity'] * (size // 11))}) FROM orders",
        lambda: f"SELECT {', '.join(f'COUNT(*) AS c{place}' for place in range(size // 18))} FROM orders",
        lambda: f"SELECT SUM({'9' * size}) FROM orders GROUP BY {'9' * dice.pick(1, 50, 5_000)}",
        lambda: f'SELECT AVG("{"x" * size}") FROM orders AS "{"y" * 500}"',
        lambda: " UNION ALL ".join([sql.rstrip(";")] * (1 + size // (len(sql) + 11))),
    )()
