"""Renders deploy/chart with Helm; called by chart.sh in an environment that has it."""

import pathlib
import sys

import yaml
from helm_python import chart as helm

FOLDER = pathlib.Path("deploy/chart")
RENDERED = pathlib.Path("deploy/chart-rendered.yaml")
HEAD = """# deploy/chart with the values of deploy/chart/ci/everything.yaml, as
# `helm template train deploy/chart -f deploy/chart/ci/everything.yaml` renders it. Written by
# scripts/chart.sh --write.
"""


def rendered(values: dict) -> str:
    """The manifests of a release, in the order of the names of their templates."""
    with helm.Chart.load(str(FOLDER)) as chart:
        files = chart.render(values, name="train", namespace="default")
    texts = [text.strip("\n") for _, text in sorted(files.items()) if text.strip()]
    return HEAD + "".join(f"---\n{text}\n" for text in texts)


def refused(values: dict) -> str:
    """The message with which Helm refuses to render these values."""
    try:
        rendered(values)
    except Exception as error:
        return str(error)
    raise SystemExit(f"these values are not refused: {values}")


def main() -> None:
    """Renders, checks and compares."""
    values = yaml.safe_load((FOLDER / "ci" / "everything.yaml").read_text())
    found = helm.lint(str(FOLDER), values)
    if found["errors"]:
        raise SystemExit(f"the chart has errors: {found}")
    text = rendered(values)
    documents = [document for document in yaml.safe_load_all(text) if document]
    kinds = sorted(document["kind"] for document in documents)
    assert kinds == ["DaemonSet", "Job", "NetworkPolicy", "PodMonitor", "Service"], kinds
    for missing, named in [
        ({**values, "image": {"repository": ""}}, "image.repository"),
        ({**values, "tls": {"secretName": ""}}, "tls.secretName"),
        ({**values, "dataset": {"hostPath": ""}}, "dataset.hostPath"),
        ({**values, "shards": {"enabled": True, "claimName": "data"}}, "shards.plan"),
    ]:
        assert named in refused(missing), named
    agents = {**values, "shards": {"enabled": False}, "agent": {"enabled": False}}
    assert not [document for document in yaml.safe_load_all(rendered(agents)) if document]
    if "--write" in sys.argv[1:]:
        RENDERED.write_text(text)
    elif RENDERED.read_text() != text:
        raise SystemExit(f"{RENDERED} differs: run scripts/chart.sh --write, and review it")
    print(f"the chart renders {len(documents)} objects")


if __name__ == "__main__":
    main()
