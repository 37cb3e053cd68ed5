"""The processes that serve, and their connections.

All of it stands on internals of uvicorn and h11, whose minor versions are pinned: the tolerance for
stray carriage returns and the refusal of two lengths (`h11_protocol`, which replaces h11's receive
buffer), limits for slow clients (`timed_protocol`, which takes over uvicorn's protocol and its flow
control), self-signed TLS and the worker's own `uvicorn.Server` (`worker`), and the supervisor in
place of uvicorn's. Before a newer version is allowed, read what they override and run
tests/api/test_stray_return.py, test_refused_heads.py, test_incoming_limits.py,
test_tls_handshake.py and test_workers.py.
"""
