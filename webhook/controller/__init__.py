"""The controller: registration, status, reports, certificates, claims."""
