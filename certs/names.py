"""The names in a server certificate, checked and normalized."""

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from cryptography import x509

from certs.problem import CertificateProblem

LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")


@dataclass(frozen=True, slots=True)
class Names:
    """DNS names in lower case and IP addresses in their short form, each sorted and without duplicates.

    Create one with `of`, so that two with the same meaning are equal.
    """

    dns: tuple[str, ...] = ()
    ips: tuple[str, ...] = ()

    @classmethod
    def of(cls, dns: Iterable[str], ips: Iterable[str] = ()) -> Self:
        """Names from what people write; CertificateProblem if there are none or one is wrong."""
        hosts, addresses = {_dns(name) for name in dns}, {_ip(ip) for ip in ips}
        names = cls(tuple(sorted(hosts)), tuple(sorted(addresses)))
        if not names.dns and not names.ips:
            text = "a server certificate needs at least one DNS name or IP address"
            raise CertificateProblem(text)
        return names

    @classmethod
    def in_certificate(cls, certificate: x509.Certificate) -> Self:
        """Its subject alternative names, maybe none; CertificateProblem if not readable."""
        try:
            extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        except x509.ExtensionNotFound:
            return cls()
        except (ValueError, x509.DuplicateExtension, x509.UnsupportedGeneralNameType):
            raise CertificateProblem("has a certificate with broken extensions") from None
        found = extension.value
        dns = {name.lower() for name in found.get_values_for_type(x509.DNSName)}
        ips = {str(ip) for ip in found.get_values_for_type(x509.IPAddress)}
        return cls(tuple(sorted(dns)), tuple(sorted(ips)))

    def extension(self) -> x509.SubjectAlternativeName:
        """The names as the X.509 extension."""
        dns: list[x509.GeneralName] = [x509.DNSName(name) for name in self.dns]
        return x509.SubjectAlternativeName(
            dns + [x509.IPAddress(ipaddress.ip_address(ip)) for ip in self.ips]
        )

    def __str__(self) -> str:
        return ", ".join(self.dns + self.ips)


def _dns(written: str) -> str:
    name = written.strip().lower()
    labels = name.removeprefix("*.").split(".")
    if all(label.isdigit() for label in labels):
        raise CertificateProblem(f"{written!r} is not a DNS name: give an address as an IP address")
    if len(name) > 253 or not all(LABEL.fullmatch(label) for label in labels):
        raise CertificateProblem(
            f"{written!r} is not a DNS name: letters, digits and hyphens in parts joined by dots,"
            " other alphabets in their xn-- form"
        )
    return name


def _ip(written: str) -> str:
    # A zone such as %eth0 belongs to one machine and has no place in a certificate.
    try:
        if "%" not in written:
            return str(ipaddress.ip_address(written.strip()))
    except ValueError:
        pass
    raise CertificateProblem(f"{written!r} is not an IP address: expected such as 127.0.0.1 or ::1")
