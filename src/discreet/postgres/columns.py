"""Which types columns of PostgreSQL have, by the names that its documentation uses; a domain is what it is made of."""

# The columns of tables: number of the table, name, number of the type, whether the role may read it, name of the type.
# Only PostgreSQL's own types go by a bare name: anybody may call another one numeric.
COLUMNS = """
WITH RECURSIVE columns AS (
    SELECT attrelid, attnum, attname, atttypid AS kind FROM pg_attribute
    WHERE {tables} AND attnum > 0 AND NOT attisdropped
    UNION ALL
    SELECT attrelid, attnum, attname, typbasetype FROM columns JOIN pg_type ON oid = kind WHERE typtype = 'd'
)
SELECT attrelid::bigint, attname::text, kind::bigint, has_column_privilege(attrelid, attnum, 'SELECT'), CASE
    WHEN typtype = 'e' THEN 'enum'
    WHEN nspname = 'pg_catalog' THEN format_type(kind, NULL)
    WHEN typname = 'citext' AND typtype = 'b' AND typcategory = 'S' THEN 'citext'
    ELSE quote_ident(nspname) || '.' || quote_ident(typname) END
FROM columns JOIN pg_type AS t ON t.oid = kind JOIN pg_namespace AS n ON n.oid = typnamespace
WHERE typtype <> 'd' ORDER BY attrelid, attnum
"""
FAMILIES = {
    "bigint": "integer",
    **dict.fromkeys(("smallint", "integer"), "narrow"),
    **dict.fromkeys(("real", "double precision"), "real"),
    "numeric": "decimal",
    "boolean": "boolean",
    **dict.fromkeys(("text", "character varying", "character", "name", "citext", "enum", "uuid"), "text"),
    "date": "date",
    "timestamp without time zone": "local",
    "timestamp with time zone": "instant",
}
