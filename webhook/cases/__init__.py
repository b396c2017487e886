"""Golden cases: policies, an object and what is expected in one file, as a policy author writes it.

A case.yaml holds `policies` (documents in any envelope, or paths relative to the file), what is
submitted, and `expect`. `object` is a manifest as `podgate apply` takes it; `request` is a request
as an API server brings it. `variants` repeat the case with some places `set` to other values.
"""
