"""The memory provider for Hermes Agent. `register` hands a HolomemProvider to ctx.register_memory_provider.

Hermes may load this folder under a name of its own, file by file: the modules here import each other by their full names.
"""

from typing import Any

from holomem.hermes.provider import HolomemProvider

__all__ = ["HolomemProvider", "register"]


def register(ctx: Any) -> None:
    """Called by the plugin loader of Hermes."""
    ctx.register_memory_provider(HolomemProvider())
