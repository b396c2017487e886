"""`python -m certs`: makes certificates for development, or keeps those that are still good."""

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

from certs.development import LONGEST, ensure_development_certificates
from certs.problem import CertificateProblem

DEFAULT_FOLDER = Path("dev-certs")
DEFAULT_DNS, DEFAULT_IPS = ("localhost",), ("127.0.0.1", "::1")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise CertificateProblem(f"{message} (see --help)")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` without the program's name; 0, or 2 for bad input."""
    try:
        options = _parser().parse_args(argv)
        dns, ips = _names(options)
        outcome = ensure_development_certificates(
            options.dir, dns, ips, datetime.now(UTC), options.days, force=options.force
        )
    except CertificateProblem as problem:
        print(f"certs: {problem}", file=sys.stderr)
        return 2
    print(outcome)
    return 0


def _names(options: argparse.Namespace) -> tuple[Sequence[str], Sequence[str]]:
    if options.dns or options.ip:
        return options.dns, options.ip
    return DEFAULT_DNS, DEFAULT_IPS


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m certs", description=__doc__)
    parser.add_argument(
        "--dir", type=Path, default=DEFAULT_FOLDER, help="the folder (default: %(default)s)"
    )
    parser.add_argument(
        "--dns",
        action="append",
        default=[],
        metavar="NAME",
        help="a DNS name, may be repeated (default: localhost if no --dns or --ip is given)",
    )
    parser.add_argument(
        "--ip",
        action="append",
        default=[],
        metavar="IP",
        help="an IP address, may be repeated (default: 127.0.0.1 and ::1, likewise)",
    )
    parser.add_argument(
        "--days",
        type=int,
        default=365,
        help=f"life of the server certificate, 1 to {LONGEST} (default: %(default)s)",
    )
    parser.add_argument("--force", action="store_true", help="make new ones in any case")
    return parser


if __name__ == "__main__":
    sys.exit(main())
