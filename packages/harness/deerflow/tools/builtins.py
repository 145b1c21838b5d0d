"""The built-in tools under the path that other programs import them from."""

from deerflow.tools.clarification import ask_clarification_tool
from deerflow.tools.files import present_file_tool
from deerflow.tools.images import view_image_tool

__all__ = ["ask_clarification_tool", "present_file_tool", "view_image_tool"]
