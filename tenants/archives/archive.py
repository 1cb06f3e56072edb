"""The file of one tenant's rows: a zip of one member a table, in PostgreSQL's text format of COPY, and a manifest.

The manifest's hashes find damage. They are no signature: who can write the file can write them, so it is to be kept as
safe as the database.
"""

import contextlib
import hashlib
import json
import os
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any
from uuid import UUID

from tenants.errors import ArchiveInvalid

FORMAT = 1
MANIFEST = "manifest.json"
MAX_MANIFEST = 1_048_576
BLOCK = 1_048_576


@dataclass(frozen=True, slots=True)
class TableEntry:
    """What the manifest says of one table: columns with their types, how many rows, and the hash of its member."""

    columns: dict[str, str]
    rows: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is in a file; `sha256` is that of the manifest itself, and names the file in the audit."""

    version: str
    made_at: str
    tenant_id: UUID
    slug: str
    tables: dict[str, TableEntry]
    sha256: str = ""


class Writer:
    """Writes the members of a file."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive

    @contextlib.contextmanager
    def member(self, table: str) -> Iterator["Hashed"]:
        """Open the member of a table for writing."""
        with self._archive.open(_member(table), "w", force_zip64=True) as sink:
            yield Hashed(sink)

    def close(self, manifest: Manifest) -> str:
        """Write the manifest, the last member; returns its hash."""
        document = asdict(manifest) | {"format": FORMAT, "tenant_id": str(manifest.tenant_id)}
        del document["sha256"]
        text = json.dumps(document, indent=1).encode()
        self._archive.writestr(MANIFEST, text)
        return hashlib.sha256(text).hexdigest()


class Hashed:
    """A member being written, and the hash of what was written so far."""

    def __init__(self, sink: IO[bytes]) -> None:
        self._sink, self._hash = sink, hashlib.sha256()

    def write(self, block: bytes | memoryview) -> None:
        """Append a block."""
        self._hash.update(block)
        self._sink.write(block)

    @property
    def sha256(self) -> str:
        """The hash of what was written."""
        return self._hash.hexdigest()


@contextlib.contextmanager
def create(target: Path) -> Iterator[Writer]:
    """Write a new file, whole or not at all, readable by this user alone (0600).

    It has another name until the block ends well. A process that is killed leaves that name behind and nothing else.

    Raises:
        FileExistsError: there is a file of this name; it is left as it is.
        OSError: the file can't be written.
    """
    if target.exists():
        raise FileExistsError(target)
    fresh = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with open(fresh, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as handle:
            with zipfile.ZipFile(handle, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
                yield Writer(archive)
            handle.flush()
            os.fsync(handle.fileno())
        # A link fails where the name has been taken meanwhile; a rename would not.
        os.link(fresh, target)
    finally:
        fresh.unlink(missing_ok=True)


class Reader:
    """Reads the members of a file that `opened` has found well formed."""

    def __init__(self, archive: zipfile.ZipFile, manifest: Manifest) -> None:
        self._archive, self.manifest = archive, manifest

    def blocks(self, table: str) -> Iterator[bytes]:
        """Yield a table's member block by block.

        Raises:
            ArchiveInvalid: it is damaged, or not what the manifest says; told at its end.
        """
        digest = hashlib.sha256()
        try:
            with self._archive.open(_member(table)) as source:
                while block := source.read(BLOCK):
                    digest.update(block)
                    yield block
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
            raise ArchiveInvalid(f"The file is damaged where the rows of {table} stand.", table=table) from error
        if digest.hexdigest() != self.manifest.tables[table].sha256:
            raise ArchiveInvalid(f"The rows of {table} are not those that the manifest names.", table=table)


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Reader]:
    """Open a file for reading.

    Raises:
        ArchiveInvalid: it is no file of this kind and format, or its members are not those that its manifest names.
        OSError: it can't be read.
    """
    try:
        archive = zipfile.ZipFile(path)
    except zipfile.BadZipFile as error:
        raise ArchiveInvalid("This is no export of a tenant, or it was cut short.") from error
    with archive:
        manifest = _read_manifest(archive)
        members = sorted(archive.namelist())
        if members != sorted([MANIFEST, *map(_member, manifest.tables)]):
            raise ArchiveInvalid("The file does not hold exactly the tables that its manifest names.")
        yield Reader(archive, manifest)


def _member(table: str) -> str:
    return f"{table}.copy"


def _read_manifest(archive: zipfile.ZipFile) -> Manifest:
    try:
        if archive.getinfo(MANIFEST).file_size > MAX_MANIFEST:
            raise ValueError("too long")
        text = archive.read(MANIFEST)
        document: dict[str, Any] = json.loads(text)
        found = document.pop("format")
        if found != FORMAT:
            raise ArchiveInvalid(f"The file has format {found!r}; this version of Ductor reads format {FORMAT}.")
        tables = {str(table): TableEntry(**entry) for table, entry in document.pop("tables").items()}
        tenant_id = UUID(document.pop("tenant_id"))
        return Manifest(**document, tenant_id=tenant_id, tables=tables, sha256=hashlib.sha256(text).hexdigest())
    except (KeyError, TypeError, ValueError, AttributeError, zipfile.BadZipFile, zlib.error) as error:
        raise ArchiveInvalid("The file has no manifest that can be read.") from error
