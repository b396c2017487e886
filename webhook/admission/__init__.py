"""The AdmissionReview protocol: review in, review out, around one call of decide."""
