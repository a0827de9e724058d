"""The notebook runs from its first cell to its last, in a kernel of its own, and ends with a plot."""

from pathlib import Path

import nbclient
import nbformat
import pytest

from document_reader import conduct
from podium_testing import FaultServer

NOTEBOOK = Path(__file__).parents[2] / "docs" / "library.ipynb"
WORKER = (
    '[[worker]]\nname = "{}"\nkind = "openai"\nmodel = "m"\nbase_url = "{}"\n'
    "price = {{ input = 1, output = {} }}\n"
)


@pytest.mark.nightly
def test_the_notebook_goes_from_a_pool_to_a_plot(tmp_path: Path) -> None:
    rows = "".join(f"What is {n} + {n}?,{2 * n}\n" for n in range(40))
    (tmp_path / "mine.csv").write_text(f"question,answer\n{rows}")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}})
    with FaultServer(conduct).in_thread() as models:
        workers = "\n".join(
            WORKER.format(name, models.url, usd) for name, usd in (("large", 8), ("small", 2))
        )
        (tmp_path / "team.toml").write_text(workers)
        client.execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert any("image/png" in output.get("data", ()) for output in outputs)
    assert any("Conductor" in output.get("text", "") for output in outputs)
