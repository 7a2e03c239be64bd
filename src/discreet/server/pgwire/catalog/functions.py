"""The functions that a query on the catalog may use: constants, macros of ours, and harmless ones of DuckDB."""

from collections.abc import Mapping

from sqlglot import exp

MACROS = """
CREATE TABLE constraint_texts (oid UINTEGER, definition VARCHAR);
CREATE TABLE type_texts (oid UINTEGER, name VARCHAR);
CREATE MACRO fn_format_type(number, modifier) AS
  CASE WHEN number IS NOT NULL THEN
    coalesce((SELECT max(name) FROM type_texts t WHERE t.oid = TRY_CAST(number AS UINTEGER)), '???') END;
CREATE MACRO fn_regclass(x) AS
  coalesce((SELECT max(relname) FROM pg_class c WHERE c.oid = TRY_CAST(x AS UINTEGER)), CAST(x AS VARCHAR));
CREATE MACRO fn_regnamespace(x) AS
  coalesce((SELECT max(nspname) FROM pg_namespace n WHERE n.oid = TRY_CAST(x AS UINTEGER)), CAST(x AS VARCHAR));
CREATE MACRO fn_regproc(x) AS regexp_replace(CAST(x AS VARCHAR), '^pg_catalog[.]', '');
CREATE MACRO fn_to_regtype(title) AS (SELECT max(oid) FROM pg_type t WHERE t.typname = title);
CREATE MACRO fn_to_regclass(title) AS (SELECT max(oid) FROM pg_class c WHERE c.relname = title);
CREATE MACRO fn_user(number) AS CASE number WHEN 10 THEN 'discreet' ELSE concat('unknown (OID=', number, ')') END;
CREATE MACRO fn_description(number, place) AS (
  SELECT max(description) FROM pg_description d
  WHERE d.objoid = TRY_CAST(number AS UINTEGER) AND d.objsubid = TRY_CAST(place AS INTEGER));
CREATE MACRO fn_object_description(number) AS fn_description(number, 0);
CREATE MACRO fn_constraint(number) AS (
  SELECT max(definition) FROM constraint_texts t WHERE t.oid = TRY_CAST(number AS UINTEGER));
CREATE MACRO fn_array_upper(a) AS nullif(len(a), 0);
CREATE MACRO fn_expand_array(a) AS
  unnest(list_transform(range(1, len(a) + 1), lambda place: {'x': a[place], 'n': place}));
CREATE MACRO fn_size(x) AS concat(x, ' bytes');
"""
# Functions of PostgreSQL, the macro for each, and how many arguments it takes.
MACRO_OF: Mapping[str, tuple[str, int]] = {
    "format_type": ("fn_format_type", 2),
    "pg_get_userbyid": ("fn_user", 1),
    "obj_description": ("fn_object_description", 1),
    "col_description": ("fn_description", 2),
    "shobj_description": ("fn_object_description", 1),
    "pg_get_constraintdef": ("fn_constraint", 1),
    "to_regtype": ("fn_to_regtype", 1),
    "to_regclass": ("fn_to_regclass", 1),
    "array_upper": ("fn_array_upper", 1),
    "array_length": ("fn_array_upper", 1),
    "_pg_expandarray": ("fn_expand_array", 1),
    "pg_size_pretty": ("fn_size", 1),
}
_TRUE, _FALSE, _NO_TEXT, _ZERO = "TRUE", "FALSE", "CAST(NULL AS VARCHAR)", "CAST(0 AS BIGINT)"
_NO_NUMBER = "CAST(NULL AS UINTEGER)"
_KINDS = (
    *("table", "type", "function", "collation", "opclass", "operator", "statistics_obj", "conversion", "opfamily"),
    *("ts_config", "ts_dict", "ts_parser", "ts_template"),
)
CONSTANTS: Mapping[str, str] = {
    **dict.fromkeys((f"pg_{kind}_is_visible" for kind in _KINDS), _TRUE),
    **dict.fromkeys(("pg_relation_is_publishable", "pg_is_in_recovery", "pg_is_other_temp_schema"), _FALSE),
    **dict.fromkeys(("row_security_active", "pg_try_advisory_lock"), _FALSE),
    **dict.fromkeys(("pg_get_expr", "pg_get_indexdef", "pg_get_triggerdef", "pg_get_viewdef"), _NO_TEXT),
    **dict.fromkeys(("pg_get_ruledef", "pg_get_functiondef", "pg_get_partkeydef", "pg_get_serial_sequence"), _NO_TEXT),
    **dict.fromkeys(("pg_get_statisticsobjdef_columns", "pg_get_statisticsobjdef", "pg_tablespace_location"), _NO_TEXT),
    **dict.fromkeys(("pg_get_function_result", "pg_get_function_arguments", "txid_current_if_assigned"), _NO_TEXT),
    **dict.fromkeys(("pg_get_function_identity_arguments", "inet_server_addr", "inet_client_addr"), _NO_TEXT),
    **dict.fromkeys(("pg_table_size", "pg_total_relation_size", "pg_relation_size", "pg_indexes_size"), _ZERO),
    **dict.fromkeys(("pg_database_size", "pg_tablespace_size", "txid_current", "pg_my_temp_schema"), _ZERO),
    **dict.fromkeys(("pg_partition_ancestors", "pg_partition_root", "pg_get_keywords"), _NO_NUMBER),
    "pg_encoding_to_char": "'UTF8'",
    "getdatabaseencoding": "'UTF8'",
    "pg_client_encoding": "'UTF8'",
    "pg_advisory_unlock_all": "''",
    "array_lower": "1",
}
# Functions that return rows, with the names of their columns; here they have none, except for some keywords.
EMPTY_TABLES: Mapping[str, tuple[str, ...]] = {
    "pg_partition_ancestors": ("relid",),
    "pg_partition_tree": ("relid", "parentrelid", "isleaf", "level"),
    "pg_get_keywords": ("word", "catcode", "catdesc"),
    "pg_options_to_table": ("option_name", "option_value"),
    "aclexplode": ("grantor", "grantee", "privilege_type", "is_grantable"),
}
KEYWORDS = ("analyse", "ilike", "isnull", "limit", "notnull", "offset", "within")  # beyond the standard's
PRIVILEGES = frozenset(
    f"has_{kind}_privilege" for kind in ("table", "any_column", "column", "schema", "database", "sequence", "function")
) | {"pg_has_role"}
GRANTED = ("SELECT", "USAGE", "CONNECT", "MEMBER")
BUILT_IN: Mapping[str, str] = {
    name: name
    for name in (
        *(
            "array_to_string",
            "generate_subscripts",
            "array_position",
            "concat_ws",
            "quote_ident",
            "strpos",
            "split_part",
        ),
        *("starts_with", "to_json", "cardinality", "any", "all", "md5", "ascii", "chr", "sign", "floor", "reverse"),
    )
} | {"json_build_object": "json_object", "json_agg": "json_group_array", "jsonb_agg": "json_group_array"}
# Functions that sqlglot knows, and whose meaning in DuckDB is the same or nearly so.
KNOWN_FUNCTIONS: tuple[type[exp.Expression], ...] = (
    *(exp.Count, exp.Min, exp.Max, exp.Sum, exp.Avg, exp.ArrayAgg, exp.GroupConcat, exp.LogicalAnd, exp.LogicalOr),
    *(exp.Coalesce, exp.Nullif, exp.Lower, exp.Upper, exp.Length, exp.Trim, exp.Substring, exp.Replace, exp.Concat),
    *(exp.Left, exp.Right, exp.StrPosition, exp.Greatest, exp.Least, exp.Abs, exp.Round, exp.RegexpReplace),
    *(exp.RowNumber, exp.Rank, exp.DenseRank, exp.CurrentTimestamp, exp.CurrentDate, exp.Array, exp.ArrayToString),
    *(exp.Case, exp.If, exp.And, exp.Or, exp.Xor, exp.Not, exp.Exists, exp.Cast, exp.RegexpLike, exp.RegexpILike),
    *(exp.Unnest, exp.Explode, exp.ExplodingGenerateSeries, exp.GenerateSeries, exp.Any, exp.All, exp.JSONObject),
    *(exp.Pow, exp.Sign, exp.ArrayContains, exp.ArrayContainsAll, exp.ArrayOverlaps, exp.Quantile),
)
STRUCTURE: tuple[type[exp.Expression], ...] = (
    *(exp.Select, exp.Subquery, exp.Union, exp.Intersect, exp.Except, exp.With, exp.CTE, exp.From, exp.Join),
    *(exp.Lateral, exp.Where, exp.Group, exp.Having, exp.Order, exp.Ordered, exp.Limit, exp.Offset, exp.Distinct),
    *(exp.Alias, exp.TableAlias, exp.Table, exp.Column, exp.Identifier, exp.Literal, exp.Null, exp.Boolean, exp.Star),
    *(exp.Paren, exp.Tuple, exp.Values, exp.Window, exp.WindowSpec, exp.Filter, exp.DataType, exp.DataTypeParam),
    *(exp.Collate, exp.Bracket, exp.Dot, exp.In, exp.Between, exp.Is, exp.Neg, exp.EQ, exp.NEQ, exp.LT, exp.LTE),
    *(exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Like, exp.ILike, exp.Escape, exp.Add, exp.Sub, exp.Mul),
    *(exp.Div, exp.IntDiv, exp.Mod, exp.DPipe, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot),
    *(exp.BitwiseLeftShift, exp.BitwiseRightShift, exp.Operator, exp.ObjectIdentifier, exp.ByteString, exp.Anonymous),
    *(exp.CurrentUser, exp.SessionUser, exp.CurrentSchema, exp.CurrentSchemas, exp.CurrentDatabase, exp.PropertyEQ),
    *(exp.CurrentCatalog, exp.CurrentVersion, exp.JSONKeyValue, exp.ArrayContainedBy),
)
