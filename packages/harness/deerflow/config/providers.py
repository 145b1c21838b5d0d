"""The model providers that discovery knows, with their current models (November 2026).

A provider's model and address can be set without a file: ``<PREFIX>_MODEL`` and ``<PREFIX>_BASE_URL``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

CHAT_OPENAI = "langchain_openai:ChatOpenAI"
PATCHED_OPENAI = "deerflow.models.patched_openai:PatchedChatOpenAI"

# Claude 5 decides by itself how much to think and refuses to be told not to, hence the empty mapping.
_ADAPTIVE = {
    "when_thinking_enabled": {"thinking": {"type": "adaptive", "display": "summarized"}},
    "when_thinking_disabled": {},
}
_SWITCHED = {
    "when_thinking_enabled": {"extra_body": {"thinking": {"type": "enabled"}}},
    "when_thinking_disabled": {"extra_body": {"thinking": {"type": "disabled"}}},
}


@dataclass(frozen=True, slots=True)
class Preset:
    """A model that a provider offers. ``context_window`` is in tokens."""

    model: str
    display_name: str = ""
    context_window: int | None = None
    thinking: bool = True
    effort: bool = False
    vision: bool = True

    def entry(self) -> dict[str, Any]:
        """The keys of ``models[]`` that say what the model can do."""
        return {
            "name": self.model,
            "display_name": self.display_name or self.model,
            "model": self.model,
            "context_window": self.context_window,
            "supports_thinking": self.thinking,
            "supports_reasoning_effort": self.effort,
            "supports_vision": self.vision,
        }


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider with a key of its own. The first of ``keys`` that is set is sent to ``base_url`` and nowhere else."""

    title: str
    keys: tuple[str, ...]
    prefixes: tuple[str, ...]
    use: str
    presets: tuple[Preset, ...]
    base_url: str | None = None
    """None: the client's own default."""
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A model server on its usual port of this machine."""

    title: str
    base_url: str
    use: str = PATCHED_OPENAI


OPENAI = Provider(
    "OpenAI",
    ("OPENAI_API_KEY",),
    ("OPENAI",),
    CHAT_OPENAI,
    (
        Preset("gpt-6.1-terra", "GPT-6.1 Terra", 1_050_000, effort=True),
        Preset("gpt-6.1-sol", "GPT-6.1 Sol", 1_050_000, effort=True),
        Preset("gpt-6-luna", "GPT-6 Luna", 1_050_000, effort=True),
    ),
    settings={"use_responses_api": True, "output_version": "responses/v1"},
)

PROVIDERS = (
    Provider(
        "Anthropic",
        ("ANTHROPIC_API_KEY",),
        ("ANTHROPIC",),
        "deerflow.models.claude_provider:ClaudeChatModel",
        (
            Preset("claude-sonnet-5-5", "Claude Sonnet 5.5", 1_000_000, effort=True),
            Preset("claude-opus-5-5", "Claude Opus 5.5", 1_000_000, effort=True),
            Preset("claude-haiku-5-5", "Claude Haiku 5.5", 1_000_000, effort=True),
        ),
        settings={"max_tokens": 32_000, **_ADAPTIVE},
    ),
    OPENAI,
    Provider(
        "DeepSeek",
        ("DEEPSEEK_API_KEY",),
        ("DEEPSEEK",),
        "deerflow.models.patched_deepseek:PatchedChatDeepSeek",
        (
            Preset("deepseek-flash", "DeepSeek V4.1 Flash", 1_000_000),
            Preset("deepseek-v4-pro", "DeepSeek V4 Pro", 1_000_000, vision=False),
        ),
        settings=_SWITCHED,
    ),
    Provider(
        "Google",
        ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        ("GOOGLE", "GEMINI"),
        PATCHED_OPENAI,
        (Preset("gemini-3.8-flash", "Gemini 3.8 Flash", 1_048_576, effort=True),),
        "https://generativelanguage.googleapis.com/v1beta/openai/",
    ),
    Provider(
        "OpenRouter",
        ("OPENROUTER_API_KEY",),
        ("OPENROUTER",),
        PATCHED_OPENAI,
        (
            Preset("anthropic/claude-sonnet-5", "Claude Sonnet 5 (OpenRouter)", 1_000_000),
            Preset("openrouter/auto", "OpenRouter Auto"),
        ),
        "https://openrouter.ai/api/v1",
    ),
    Provider(
        "Mistral",
        ("MISTRAL_API_KEY",),
        ("MISTRAL",),
        PATCHED_OPENAI,
        (
            Preset("mistral-medium-latest", "Mistral Medium", 131_072, thinking=False),
            Preset("mistral-large-latest", "Mistral Large", 262_144, thinking=False),
        ),
        "https://api.mistral.ai/v1",
    ),
    Provider(
        "Groq",
        ("GROQ_API_KEY",),
        ("GROQ",),
        PATCHED_OPENAI,
        (Preset("openai/gpt-oss-120b", "GPT-OSS 120B (Groq)", 131_072, effort=True, vision=False),),
        "https://api.groq.com/openai/v1",
    ),
    Provider(
        "xAI",
        ("XAI_API_KEY",),
        ("XAI",),
        PATCHED_OPENAI,
        (Preset("grok-4.5", "Grok 4.5", 500_000, effort=True),),
        "https://api.x.ai/v1",
    ),
    Provider(
        "Moonshot",
        ("MOONSHOT_API_KEY", "KIMI_API_KEY"),
        ("MOONSHOT", "KIMI"),
        "deerflow.models.patched_deepseek:PatchedChatDeepSeek",
        (Preset("kimi-k3", "Kimi K3", 262_144),),
        "https://api.moonshot.ai/v1",
    ),
    Provider(
        "Alibaba Qwen",
        ("DASHSCOPE_API_KEY",),
        ("DASHSCOPE",),
        PATCHED_OPENAI,
        (
            Preset("qwen3.7-plus", "Qwen3.7 Plus", 1_000_000),
            Preset("qwen3.8-max", "Qwen3.8 Max", 262_144, vision=False),
        ),
        "https://dashscope.aliyuncs.com/compatible-mode/v1",
        {
            "when_thinking_enabled": {"extra_body": {"enable_thinking": True}},
            "when_thinking_disabled": {"extra_body": {"enable_thinking": False}},
        },
    ),
    Provider(
        "Zhipu",
        ("ZHIPUAI_API_KEY", "ZHIPU_API_KEY"),
        ("ZHIPUAI", "ZHIPU"),
        "deerflow.models.patched_deepseek:PatchedChatDeepSeek",
        (Preset("glm-5.2", "GLM-5.2", 1_000_000, vision=False),),
        "https://open.bigmodel.cn/api/paas/v4",
        _SWITCHED,
    ),
    Provider(
        "Z.ai",
        ("ZAI_API_KEY",),
        ("ZAI",),
        "deerflow.models.patched_deepseek:PatchedChatDeepSeek",
        (Preset("glm-5.2", "GLM-5.2", 1_000_000, vision=False),),
        "https://api.z.ai/api/paas/v4",
        _SWITCHED,
    ),
    Provider(
        "MiniMax",
        ("MINIMAX_API_KEY",),
        ("MINIMAX",),
        "deerflow.models.patched_minimax:PatchedChatMiniMax",
        (Preset("MiniMax-M3", "MiniMax M3", 1_000_000),),
        "https://api.minimax.io/v1",
    ),
    Provider(
        "SiliconFlow",
        ("SILICONFLOW_API_KEY",),
        ("SILICONFLOW",),
        "deerflow.models.patched_deepseek:PatchedChatDeepSeek",
        (Preset("deepseek-ai/DeepSeek-V4-Flash", "DeepSeek V4 Flash (SiliconFlow)", thinking=False, vision=False),),
        "https://api.siliconflow.cn/v1",
    ),
)

LOCAL_SERVERS = (
    LocalServer("Ollama", "http://127.0.0.1:11434/v1"),
    LocalServer("vLLM", "http://127.0.0.1:8000/v1", "deerflow.models.vllm_provider:VllmChatModel"),
    LocalServer("LM Studio", "http://127.0.0.1:1234/v1"),
)

NOT_FOR_CHAT = (
    "embed",
    "rerank",
    "whisper",
    "tts",
    "moderation",
    "dall-e",
    "image",
    "audio",
    "realtime",
    "transcribe",
    "sora",
    "clip",
    "bge-",
)
"""Parts of the ids of models that cannot hold a conversation."""
