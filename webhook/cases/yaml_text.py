"""Values as YAML, in the style of cases."""

from __future__ import annotations

from typing import Any

import yaml


def text_of(value: Any) -> str:
    """A value as YAML, small maps and lists on one line."""
    return yaml.dump(
        value,
        Dumper=Plain,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=None,
        width=110,
    )


class Plain(yaml.SafeDumper):
    """YAML without anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write no anchors."""
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent lists below their key."""
        super().increase_indent(flow, False)
