"""Which package to install for a module that is missing."""

from __future__ import annotations

_PACKAGES = {
    "acp": "agent-client-protocol",
    "agent_sandbox": "agent-sandbox",
    "botpy": "qq-botpy",
    "ddgs": "ddgs",
    "dingtalk_stream": "dingtalk-stream",
    "discord": "discord.py",
    "exa_py": "exa-py",
    "firecrawl": "firecrawl-py",
    "google.genai": "google-genai",
    "kubernetes": "kubernetes",
    "langchain_anthropic": "langchain-anthropic",
    "langchain_aws": "langchain-aws",
    "langchain_cohere": "langchain-cohere",
    "langchain_deepseek": "langchain-deepseek",
    "langchain_fireworks": "langchain-fireworks",
    "langchain_google_genai": "langchain-google-genai",
    "langchain_google_vertexai": "langchain-google-vertexai",
    "langchain_groq": "langchain-groq",
    "langchain_huggingface": "langchain-huggingface",
    "langchain_mcp_adapters": "langchain-mcp-adapters",
    "langchain_mistralai": "langchain-mistralai",
    "langchain_ollama": "langchain-ollama",
    "langchain_openai": "langchain-openai",
    "langchain_openrouter": "langchain-openrouter",
    "langchain_together": "langchain-together",
    "langchain_xai": "langchain-xai",
    "langfuse": "langfuse",
    "langgraph.checkpoint.postgres": "langgraph-checkpoint-postgres",
    "lark_oapi": "lark-oapi",
    "markdownify": "markdownify",
    "markitdown": "markitdown[all,xlsx]",
    "psycopg": "psycopg[binary]",
    "pymupdf4llm": "pymupdf4llm",
    "readabilipy": "readabilipy",
    "slack_bolt": "slack-bolt",
    "slack_sdk": "slack-sdk",
    "tavily": "tavily-python",
    "telegram": "python-telegram-bot",
}


def is_known(module: str) -> bool:
    """Whether exactly this module is known to come from a package of its own."""
    return module in _PACKAGES


def install_hint(module: str) -> str:
    """How to install what provides ``module``, e.g. for ``langchain_openai`` or a module below it."""
    parts = module.split(".")
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    package = next((_PACKAGES[name] for name in names if name in _PACKAGES), None)
    if package is None:
        return f"Check the spelling, or install the package that provides it (perhaps `pip install {parts[0].replace('_', '-')}`)."
    shown = f"'{package}'" if "[" in package else package
    return f"Install it with `uv pip install {shown}` or `pip install {shown}`."
