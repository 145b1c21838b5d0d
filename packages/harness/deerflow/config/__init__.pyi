"""What ``__init__.py`` offers, for type checkers."""

from deerflow.config.access import (
    get_app_config as get_app_config,
)
from deerflow.config.access import (
    get_extensions_config as get_extensions_config,
)
from deerflow.config.access import (
    get_memory_config as get_memory_config,
)
from deerflow.config.access import (
    get_paths as get_paths,
)
from deerflow.config.agents import (
    AcpAgentConfig as AcpAgentConfig,
)
from deerflow.config.agents import (
    AgentsApiConfig as AgentsApiConfig,
)
from deerflow.config.agents import (
    ContextSize as ContextSize,
)
from deerflow.config.agents import (
    CustomSubagentConfig as CustomSubagentConfig,
)
from deerflow.config.agents import (
    MemoryConfig as MemoryConfig,
)
from deerflow.config.agents import (
    SkillEvolutionConfig as SkillEvolutionConfig,
)
from deerflow.config.agents import (
    SkillsConfig as SkillsConfig,
)
from deerflow.config.agents import (
    SubagentOverride as SubagentOverride,
)
from deerflow.config.agents import (
    SubagentsConfig as SubagentsConfig,
)
from deerflow.config.agents import (
    SummarizationConfig as SummarizationConfig,
)
from deerflow.config.agents import (
    TitleConfig as TitleConfig,
)
from deerflow.config.app import CONFIG_VERSION as CONFIG_VERSION
from deerflow.config.app import AppConfig as AppConfig
from deerflow.config.discovery import discover_models as discover_models
from deerflow.config.edit import DELETE as DELETE
from deerflow.config.edit import edit_json as edit_json
from deerflow.config.edit import edit_yaml as edit_yaml
from deerflow.config.env import MissingEnv as MissingEnv
from deerflow.config.env import missing_in as missing_in
from deerflow.config.env import require as require
from deerflow.config.environment import export_environ as export_environ
from deerflow.config.environment import load_environ as load_environ
from deerflow.config.errors import ConfigError as ConfigError
from deerflow.config.errors import ConfigProblem as ConfigProblem
from deerflow.config.extensions import (
    ExtensionsConfig as ExtensionsConfig,
)
from deerflow.config.extensions import (
    McpOAuthConfig as McpOAuthConfig,
)
from deerflow.config.extensions import (
    McpServerConfig as McpServerConfig,
)
from deerflow.config.extensions import (
    SkillStateConfig as SkillStateConfig,
)
from deerflow.config.load import load_config as load_config
from deerflow.config.load import load_extensions as load_extensions
from deerflow.config.locate import (
    ConfigFiles as ConfigFiles,
)
from deerflow.config.locate import (
    example_file as example_file,
)
from deerflow.config.locate import (
    find_files as find_files,
)
from deerflow.config.locate import (
    project_root as project_root,
)
from deerflow.config.models import ModelConfig as ModelConfig
from deerflow.config.models import PricingConfig as PricingConfig
from deerflow.config.origin import Origin as Origin
from deerflow.config.paths import Paths as Paths
from deerflow.config.paths import join_host_path as join_host_path
from deerflow.config.safety import (
    CircuitBreakerConfig as CircuitBreakerConfig,
)
from deerflow.config.safety import (
    GuardrailProviderConfig as GuardrailProviderConfig,
)
from deerflow.config.safety import (
    GuardrailsConfig as GuardrailsConfig,
)
from deerflow.config.safety import (
    TokenUsageConfig as TokenUsageConfig,
)
from deerflow.config.sandbox import (
    LimitsConfig as LimitsConfig,
)
from deerflow.config.sandbox import (
    MountConfig as MountConfig,
)
from deerflow.config.sandbox import (
    NetworkConfig as NetworkConfig,
)
from deerflow.config.sandbox import (
    SandboxConfig as SandboxConfig,
)
from deerflow.config.sandbox import (
    ToolImageConfig as ToolImageConfig,
)
from deerflow.config.secrets import MASK as MASK
from deerflow.config.secrets import is_secret_key as is_secret_key
from deerflow.config.secrets import mask_secrets as mask_secrets
from deerflow.config.source import ConfigSource as ConfigSource
from deerflow.config.storage import (
    CheckpointerConfig as CheckpointerConfig,
)
from deerflow.config.storage import (
    DatabaseConfig as DatabaseConfig,
)
from deerflow.config.storage import (
    RunEventsConfig as RunEventsConfig,
)
from deerflow.config.storage import (
    StreamBridgeConfig as StreamBridgeConfig,
)
from deerflow.config.tools import (
    ToolConfig as ToolConfig,
)
from deerflow.config.tools import (
    ToolGroupConfig as ToolGroupConfig,
)
from deerflow.config.tools import (
    ToolSearchConfig as ToolSearchConfig,
)
from deerflow.config.tools import (
    UploadsConfig as UploadsConfig,
)
from deerflow.config.tracing import (
    get_enabled_tracing_providers as get_enabled_tracing_providers,
)
from deerflow.config.tracing import (
    get_explicitly_enabled_tracing_providers as get_explicitly_enabled_tracing_providers,
)
from deerflow.config.tracing import (
    get_tracing_config as get_tracing_config,
)
from deerflow.config.tracing import (
    is_tracing_enabled as is_tracing_enabled,
)
from deerflow.config.tracing import (
    validate_enabled_tracing_providers as validate_enabled_tracing_providers,
)
from deerflow.config.upgrade import UpgradeReport as UpgradeReport
from deerflow.config.upgrade import upgrade_config as upgrade_config
