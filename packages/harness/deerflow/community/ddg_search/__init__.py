from deerflow.community.ddg_search.tools import web_search_tool

__all__ = ["web_search_tool"]
