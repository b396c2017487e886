"""Learns the defaults of an API server by sending it objects and reading its answers.

The rule of this place: inputs are written by hand, values never. Every value of the table was seen
in an answer, every condition separates answers that differed.

The table has rules in `podSpec` (for the pod spec of every kind), and per kind `podSpecRules` (for
its pod spec, at the path `podSpec`), `rules` (for the object outside it) and `generated` (paths
that the server makes up per object). Kinds without pods have no path and no `podSpecRules`. A rule
looks only at the object as it was sent, so order does not matter, but for the `rule` forms, which
come last and in order of application.

`path`      `a.b[].c`: key `c` of every object that the rest leads to; `[]` is every item of a list,
            `["k.e/y"]` a key with dots or slashes. Where the object was not sent nothing happens.
            A path that begins with `containers` is good for the lists of `sameAs` too.
`value`     is set if the key is missing or null; with `emptyToo` also if it is `""`, 0, false, `{}`
            or `[]`. It is complete: no other rule adds to it.
`copyFrom`  as `value`, with what the `sibling` key of the same object, or the path `at` from the
            top of the pod spec or object, was sent with; nothing if that is missing, null or "".
`when`      the rule acts if the value of `sibling` or `at`, where missing and "" count as null, is
            `in` or is `notIn` a list; or if no key but those of `only` is there and not null.
`rule`      `image-tag`: `value` by the class of the reference at the sibling key `image`, for a
            missing or "" policy. `requests-from-limits`: every limit without a request of that name
            becomes one. `pod-hugepage-limits-from-containers`, then
            `pod-requests-from-containers-and-limits`: where pod-level `limits` were sent, missing
            pod-level requests are the effective sum of the containers', else the pod's limits.

`admission` holds what the default admission plugins add to a bare Pod: `value` sets, `append` adds
to a list, `-*` ends a name with random letters.
"""
