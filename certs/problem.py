"""The one error of this package."""


class CertificateProblem(Exception):  # noqa: N818  the package says "problem" throughout
    """One sentence for a person: what is wrong, with what, and where it helps what to do."""
