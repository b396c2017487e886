# The image holds the program, its pinned packages and the shipped policies; nothing of the tests.
FROM python:3.11-slim AS build
WORKDIR /src
COPY requirements.lock pyproject.toml README.md LICENSE ./
COPY webhook webhook
COPY certs certs
COPY policies policies
RUN python -m venv /opt/podgate \
 && /opt/podgate/bin/pip install --no-cache-dir --require-hashes -r requirements.lock \
 && /opt/podgate/bin/pip install --no-cache-dir --no-deps --no-build-isolation . \
 && /opt/podgate/bin/pip uninstall --yes hypothesis pytest pytest-cov mypy ruff import-linter jsonpatch hatchling editables

FROM python:3.11-slim
COPY --from=build /opt/podgate /opt/podgate
ENV PATH=/opt/podgate/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
EXPOSE 9443 8080
ENTRYPOINT ["podgate"]
CMD ["serve"]
