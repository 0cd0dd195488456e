"""The built-in executor, loaded before it is needed."""

import subprocess
import sys


def test_loading_the_sdk_leaves_the_search_for_garbage_on_and_what_was_loaded_out_of_it() -> None:
    program = """
import gc, sys
from agents.executors.builtin import BuiltinExecutor
executor = BuiltinExecutor(threads=1)
assert "anthropic" not in sys.modules
executor.warm_up()
assert "anthropic" in sys.modules
assert gc.isenabled()
print(gc.get_freeze_count() > 100_000)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=False, text=True
    )
    assert done.stdout == "True\n", done.stderr
