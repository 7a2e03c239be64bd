"""The PostgreSQL protocol, so that psql, BI tools and drivers can ask.

listener     accepts connections, which share a hub (limits, TLS, people);  connection: bytes, login, cancelling
messages     what clients send, and replies: what servers send, as records and bytes
protocol     which message may come when, in one table; no sockets;  scram: passwords
session      what each message leads to;  statements: what a text says;  commands: what a statement does
text_reader  reads statements and queries in threads, by turns
queries      answers queries: the service those on the policy's tables, a private DuckDB those on the catalog
pg_types     types and how their values are written
"""
