"""The one error of this package."""


class CertificateProblem(Exception):  # noqa: N818  the package says "problem" throughout
    """One sentence for users: what is wrong and, if possible, what to do."""
