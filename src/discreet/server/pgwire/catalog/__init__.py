"""PostgreSQL's system catalog, with the tables of the policy that one person may query, and nothing else.

relations    names and columns of the relations, read from relations.txt
content      their rows, from the policy
functions    which functions a query may use, and what they mean
translate    a checked query, written for DuckDB
engine       a locked DuckDB in memory that answers it
"""
