"""Golden cases: policies, an object and the expected result in one file, as a policy author writes it.

A case.yaml has `policies` (documents in any format, or paths relative to the file), the input, and `expect`.
The input is `object`, a manifest for `podgate apply`, or `request`, a request of an API server. `variants`
repeat the case with other values at some paths (`set`).
"""
