"""HTTP: JSON and Arrow under /api/v1, beside the mounted interfaces.

app            the application;  gate: who asks, and limits on size and time;  mounts: what other interfaces add
request_bodies what is sent, with examples;  answer_bodies: answers as JSON or as an Arrow stream
question_routes, oversight_routes, release_routes: the paths
problem_details errors as RFC 9457 describes them;  listener: the server that runs the application
"""
