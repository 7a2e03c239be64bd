"""The pages of a server: HTML that works without scripts, for people with a token, and the start page for everybody.

app            add_pages: mounts everything on the HTTP app;  rendering: templates, headers, files of styles and scripts
sessions       who is signed in;  forms: what a form sends, and its protection against other sites
start          one question, two worlds
ask            questions, their cost and answers;  answer_view: an answer as a table with intervals
corrections    queries in place of refused ones;  snippets: the same question for psql, Python, R and curl
budget         what is left, and the ledger's charges;  attacks: the course's attacks, measured
releases       what was published;  owner: policy, people, incidents, approvals and audit
"""
