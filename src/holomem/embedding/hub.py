"""Fetching a pinned model from the hub, by its own client. The only module that uses a network, and only when asked to.

The client's cache, switches and mirrors hold (HF_HOME, HF_HUB_CACHE, HF_HUB_OFFLINE, HF_ENDPOINT), and it takes a transfer
that breaks off up where it ended. What arrives is the published file, by its hash, or it is removed.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from holomem.embedding.files import REMEDY, PinnedFile, PinnedModel, cached_folder
from holomem.embedding.hashes import file_hash
from holomem.errors import ModelError

__all__ = ["fetch"]

ANSWER_SECONDS: Final = 10.0  # for the first answer of the hub


def fetch(pinned: PinnedModel) -> Path:
    """The folder of the model in the hub's cache, after getting there what is not there yet.

    Of its graphs the best for this processor is taken. The client shows its progress on stderr. ModelError when the
    hub cannot be reached, the cache cannot be written, or what came is not what was published.
    """
    files = (pinned.tokenizer, pinned.graphs[0])
    for file in files:
        folder = cached_folder(pinned)
        if folder is not None and not _intact(folder / file.path, file):
            _remove(folder / file.path)  # the client would take a damaged file for the right one
        if folder is None or not (folder / file.path).exists():
            _get(pinned, file)
    folder = cached_folder(pinned)
    if folder is None:
        raise ModelError(f"{pinned.name} was fetched and is not in the cache; set HF_HUB_CACHE, or {REMEDY}")
    return folder


def _get(pinned: PinnedModel, file: PinnedFile) -> None:
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        got = hf_hub_download(pinned.name, file.path, revision=pinned.revision, etag_timeout=ANSWER_SECONDS)
    except LocalEntryNotFoundError as error:
        offline = os.environ.get("HF_HUB_OFFLINE") or os.environ.get("TRANSFORMERS_OFFLINE")
        lack = "HF_HUB_OFFLINE is set" if offline else f"the hub cannot be reached ({_line(error.__cause__ or error)})"
        raise ModelError(
            f"{file.path} of {pinned.name} cannot be fetched: {lack}; try again later, or {REMEDY}"
        ) from error
    except Exception as error:  # the client raises errors of its own, of its HTTP library and of the system
        where = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else _line(error)
        raise ModelError(
            f"{file.path} of {pinned.name} cannot be fetched: {where}; HF_HOME names another cache and HF_ENDPOINT a "
            f"mirror; try again, or {REMEDY}"
        ) from error
    path = Path(got)
    found = file_hash(path)
    if found != file.sha256:
        _remove(path)
        raise ModelError(
            f"{file.path} of {pinned.name} came otherwise than it was published (SHA-256 {found}) and was removed; "
            f"unset HF_ENDPOINT if it names a mirror and try again, or {REMEDY}"
        )


def _intact(path: Path, file: PinnedFile) -> bool:
    return path.is_file() and path.stat().st_size == file.size_bytes and file_hash(path) == file.sha256


def _remove(path: Path) -> None:
    """Remove a file of the cache and the blob behind its link, which would be taken for it the next time."""
    blob = path.resolve()
    with suppress(OSError):
        path.unlink()
    with suppress(OSError):
        blob.unlink()


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
