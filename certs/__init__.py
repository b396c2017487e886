"""The certificate lifecycle: authority, leaves, rotation with overlap, files.

The rule of this package: it knows nothing of `webhook` and of no Kubernetes client. Times are
arguments, always aware of their zone; only `__main__` reads a clock. Keys and serial numbers come
from the operating system. What cannot go on is a `CertificateProblem`: one sentence that says
what is wrong and what to do.

    __main__ → development → files
               secret → rotation → due → state │ authority → pair → names → problem
"""
