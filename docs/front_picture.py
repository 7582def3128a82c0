"""The picture of README and front page, out of README's program: `python docs/front_picture.py`."""

import re
from pathlib import Path

DOCS = Path(__file__).parent
code = re.search(r"```python\n(.*?)```", (DOCS.parent / "README.md").read_text(), re.DOTALL)[1]
names: dict = {}
exec(code, names)
names["display"].figure_.savefig(DOCS / "odds_ratios.png", dpi=150, bbox_inches="tight")
