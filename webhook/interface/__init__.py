"""Resource interfaces, profiles and CRD schemas: where a kind has its pods, replicas and fields."""
