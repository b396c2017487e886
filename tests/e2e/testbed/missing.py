"""The one error that says the test bed cannot be had on this machine."""


class MissingTestbed(Exception):  # noqa: N818 - it names a state of the machine
    """`reason` is what was not found, `how_to_get_it` what a person can do about it."""

    def __init__(self, reason: str, how_to_get_it: str) -> None:
        super().__init__(f"{reason}\n{how_to_get_it}")
        self.reason = reason
        self.how_to_get_it = how_to_get_it
