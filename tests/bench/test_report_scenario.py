"""The ``report`` conversation quotes what the tools found, and the sample data is what it says."""

from __future__ import annotations

import asyncio
import csv
import json
from decimal import Decimal
from pathlib import Path

import pytest
from bench.scripted_openai import ScriptedOpenAI
from langchain.agents import create_agent
from langchain_core.tools import BaseTool, tool
from langchain_openai import ChatOpenAI

from bench import sample_data


def mapped_tools(root: Path) -> list[BaseTool]:
    """Tools on ``root`` instead of /mnt/user-data, as a sandbox would have them."""

    @tool
    async def bash(description: str, command: str) -> str:
        """Run a command."""
        command = command.replace("/mnt/user-data", str(root))
        process = await asyncio.create_subprocess_exec("bash", "-c", command, stdout=-1, stderr=-2)
        output, _ = await process.communicate()
        return output.decode()

    @tool
    def write_file(description: str, path: str, content: str) -> str:
        """Write a file."""
        target = Path(path.replace("/mnt/user-data", str(root)))
        target.write_text(content)
        return "OK"

    @tool
    def present_files(filepaths: list[str]) -> str:
        """Show files to the user."""
        return "Presented " + ", ".join(filepaths)

    return [bash, write_file, present_files]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "uploads").mkdir()
    (tmp_path / "outputs").mkdir()
    return tmp_path


async def run_report(root: Path, name: str) -> tuple[str, str]:
    """The last message and the report of a whole run on an example file."""
    (root / "uploads" / name).write_text((sample_data.EXAMPLES / name).read_text())
    with ScriptedOpenAI() as endpoint:
        model = ChatOpenAI(model="any", base_url=endpoint.base_url, api_key="test")  # type: ignore[arg-type]
        agent = create_agent(model, mapped_tools(root))
        text = f"scenario:report Analyse /mnt/user-data/uploads/{name}"
        state = await agent.ainvoke({"messages": [{"role": "user", "content": text}]})
    return str(state["messages"][-1].content), (root / "outputs" / "report.md").read_text()


async def test_the_report_holds_the_true_totals_of_the_sales_file(root: Path) -> None:
    total, dirty, seen = Decimal(0), 0, set[str]()
    for row in csv.DictReader((sample_data.EXAMPLES / "sales-2025.csv").open()):
        clean = row["quantity"].isdigit() and row["unit_price"].replace(".", "").isdigit() and row["region"]
        if not clean or row["order_id"] in seen:
            dirty += 1
            continue
        seen.add(row["order_id"])
        total += int(row["quantity"]) * Decimal(row["unit_price"])

    last, report = await run_report(root, "sales-2025.csv")

    assert (len(seen), dirty) == (495, 6)
    assert f"**{total:.2f}**" in report
    assert "501 rows, 6 unusable" in last and f"{total:.2f}" in last


async def test_the_report_understands_a_file_with_amounts(root: Path) -> None:
    last, report = await run_report(root, "expenses-march.csv")

    assert "24 rows, 1 unusable" in last
    assert "| category | total |" in report


async def test_the_numbers_come_from_the_tool_result(root: Path) -> None:
    facts = {
        "rows": 3,
        "dirty_rows": 1,
        "valid_rows": 2,
        "group": "region",
        "total": "77.77",
        "by_group": {"Moon": "77.77"},
    }
    with ScriptedOpenAI() as endpoint:
        model = ChatOpenAI(model="any", base_url=endpoint.base_url, api_key="test")  # type: ignore[arg-type]

        @tool
        def bash(command: str) -> str:
            """Run a command."""
            return f"noise\n{json.dumps(facts)}\n[exit 0]"

        agent = create_agent(model, [bash, *mapped_tools(root)[1:]])
        text = "scenario:report /mnt/user-data/uploads/any.csv"
        state = await agent.ainvoke({"messages": [{"role": "user", "content": text}]})

    assert "the largest region is Moon with 77.77" in state["messages"][-1].content
    assert "the chart could not be drawn" in state["messages"][-1].content


async def test_a_failed_computation_is_not_talked_over(root: Path) -> None:
    with ScriptedOpenAI() as endpoint:
        model = ChatOpenAI(model="any", base_url=endpoint.base_url, api_key="test")  # type: ignore[arg-type]
        agent = create_agent(model, mapped_tools(root))
        text = "scenario:report /mnt/user-data/uploads/absent.csv"
        state = await agent.ainvoke({"messages": [{"role": "user", "content": text}]})

    assert "The computation failed" in state["messages"][-1].content
    assert not (root / "outputs" / "report.md").exists()


def test_the_example_files_are_what_the_generator_makes() -> None:
    assert (sample_data.EXAMPLES / "sales-2025.csv").read_text() == sample_data.sales()
    assert (sample_data.EXAMPLES / "expenses-march.csv").read_text() == sample_data.expenses()
