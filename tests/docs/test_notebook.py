"""The notebook runs from its first cell to its last, in a kernel of its own, and ends with a plot."""

from pathlib import Path

import nbclient
import nbformat

NOTEBOOK = Path(__file__).parents[2] / "docs" / "library.ipynb"


def test_the_notebook_goes_from_a_pool_to_a_plot(tmp_path: Path) -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert any("image/png" in output.get("data", ()) for output in outputs)
    assert any("Conductor" in output.get("text", "") for output in outputs)
