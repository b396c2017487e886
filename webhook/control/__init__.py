"""What runs beside admission: registration today; each reconciler is a pure function at heart."""
