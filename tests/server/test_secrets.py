"""The served webhook tells no value of env, args, command or annotations: answers, logs, metrics."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
import yaml

from tests import planted
from tests.cli.test_secrets import catalog_of, review, silent
from tests.server import test_http
from tests.server.judges import Deciding
from tests.server.test_http import Documents, Running
from webhook.admission.judge import decide_review
from webhook.evaluation.outcome import Decision
from webhook.evaluation.references import References
from webhook.evaluation.request import Request
from webhook.service import telemetry

ca = test_http.ca
launch = test_http.launch


@pytest.mark.parametrize("name", ["locked", "tried"])
def test_answers_logs_and_metrics_tell_no_value(
    name: str,
    tmp_path: Path,
    launch: Callable[..., Running],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    file = tmp_path / "policies.yaml"
    file.write_text(yaml.safe_dump_all(planted.POLICIES[name]))
    catalog = catalog_of(file)

    def judge(request: Request) -> Decision:
        if request.name == "bug":
            raise KeyError(orjson.dumps(request.object).decode())
        return decide_review(request, catalog, References({"team": {}}))

    made = launch(Documents(Deciding(judge)))
    documents = [each for kind in planted.WORKLOADS for _, each in planted.manifests(kind)]
    documents.append({**planted.pod(), "metadata": {"name": "bug", "annotations": {}}})
    for document in documents[::3] + documents[-1:]:
        for path in ("/mutate", "/validate"):
            body = orjson.dumps(review(document))
            assert planted.markers_in(body.decode())
            _, answer = made.post(body, path)
            answer["response"].pop("patch", None)
            silent(orjson.dumps(answer).decode())
    messages = {each.getMessage() for each in caplog.records}
    assert "evaluation failed" in messages
    assert "denied" in messages
    for form in (telemetry.JsonLines(), telemetry.TextLines()):
        silent(*(form.format(each) for each in caplog.records if each.name == "podgate"))
    status, text = made.probe("/metrics")
    assert status == 200
    assert "podgate_violations" in text
    silent(text)
