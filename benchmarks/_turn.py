import sys, time, tempfile
from pathlib import Path
from benchmarks.way import *
from benchmarks import way

describe()
with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
    folder = Path(name)
    origin = make_repository(folder / "origin.git", {"a.py": "x=1\n"})
    with running_product(folder) as (product, api):
        product.project(KEY, origin, auto_merge=True)
        time.sleep(6)
        overhead_per_turn(product, api, 5)
