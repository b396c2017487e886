"""The rows of the conformance list without a test, each with what it waits for."""

WORKER = "needs the jq worker process, which alone can be stopped"

MISSING = {
    "R12": f"{WORKER}: a call that is cancelled before it begins",
    "R15": f"{WORKER}: a deadline of one millisecond",
    "R16": f"{WORKER}: a deadline that is not reached",
}
