"""How many changes of draws ago each table of benchmarks/results was made.

``python tests/tools/ages.py`` prints the ages of all.

A table measures draws, and golden.json has the draws of every kind of fit. The age of a table is
how often the package has since changed the draws of a golden fit of a kind that its script runs:
of a sampler or estimator that it imports, itself or through another file of benchmarks. The
history of git has the changes, so that a copy without it, or with a part of it, has no answer.
"""

import ast
import json
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "docs"))
import tables  # noqa: E402

GOLDEN = "tests/promises/golden.json"
KINDS = {"BayesianLinearRegression": "linear", "DRBM": "drbm", "DRBMClassifier": "drbm"}


def git(*command):
    """What git prints; nothing where it fails, as on a commit that is not there, or is missing."""
    if shutil.which("git") is None:
        return ""
    done = subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


@cache
def golden(revision):
    """Means and standard deviations of golden fits at a commit, by name."""
    stored = json.loads(git("show", f"{revision}:{GOLDEN}") or "{}")
    fits = stored.get("fits", stored)  # of old commits the whole file
    return {name: (fit["mean"], fit["sd"]) for name, fit in fits.items()}


@cache
def changes():
    """Names of the golden fits that each commit changed."""
    found = {}
    for commit in git("log", "--format=%H", "--", GOLDEN).split():
        before, after = golden(f"{commit}^"), golden(commit)
        found[commit] = {name for name in after if before.get(name, after[name]) != after[name]}
    return found


@cache
def imported(path):
    """Names that a script takes from the package, itself or through files of benchmarks."""
    text, names, seen = path.read_text(encoding="utf-8"), set(), {path}
    files = [text]
    while files:
        for node in ast.walk(ast.parse(files.pop())):
            if not isinstance(node, ast.ImportFrom):
                continue
            module, of = node.module or "", {alias.name for alias in node.names}
            if module.startswith("skbayes_sg"):
                names |= of
            for part in (module, *(f"{module}.{name}" for name in of)):
                file = ROOT / f"{part.replace('.', '/')}.py"
                if part.startswith("benchmarks.") and file.exists() and file not in seen:
                    seen.add(file)
                    files.append(file.read_text(encoding="utf-8"))
    return names | ({"partial_fit"} if ".partial_fit(" in text else set())


def measures(fit, names):
    """Whether a script that imports `names` runs fits of the kind of a golden one."""
    kind, *of = fit.split(", ")
    if kind in names:  # a sampler
        return True
    if kind == "stream":
        return "partial_fit" in names
    if "em" in (kind, *of) and "VariationalEM" not in names:
        return False
    kinds = {KINDS.get(name, "logistic") for name in names if name.startswith(("Bayes", "DRBM"))}
    if any(name.startswith("BayesianMLP") for name in names):
        kinds.add("mlp")
    return kind in kinds or kind == "em"


def has_history():
    """Whether the history of git is here, and whole."""
    return git("rev-parse", "--is-shallow-repository") == "false" and bool(golden("HEAD"))


@cache
def ages():
    """Changes of draws since each table was made, by file, the most of all kinds of fits."""
    found = {}
    for path in sorted(tables.RESULTS.glob("*.csv")):
        made_by, day, commit = tables.header(path.name)
        commit = commit.rstrip("+")
        since = git("rev-list", "HEAD", f"^{commit}", "--", GOLDEN)
        if not git("cat-file", "-t", commit):  # of a branch that is gone: what is of later days
            since = git("rev-list", f"--since={day} 23:59", "HEAD", "--", GOLDEN)
        times = [changes()[each] for each in since.split()]
        script = ROOT / f"{made_by.replace('.', '/')}.py"
        names = imported(script) if script.exists() else set()
        fits = [fit for fit in golden("HEAD") if measures(fit, names)]
        found[path.name] = max((sum(fit in each for each in times) for fit in fits), default=0)
    return found


if __name__ == "__main__":
    for file, age in sorted(ages().items(), key=lambda pair: -pair[1]):
        print(f"{age:4}  {file}")
