from deerflow.community.image_search.tools import image_search_tool

__all__ = ["image_search_tool"]
