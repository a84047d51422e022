"""The interfaces of other libraries over a `Memory`: change one import and keep the calls.

mem0        `Memory` and `MemoryClient` of Mem0, no dependency
langgraph   a `BaseStore` of LangGraph; needs the extra `[langgraph]`
"""
