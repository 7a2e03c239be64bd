"""The PostgreSQL protocol, so that psql, BI tools and drivers can ask.

messages     what clients and servers send, as records and bytes
protocol     which message may come when, in one table; no sockets
scram        passwords
"""
