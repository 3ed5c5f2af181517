"""The remnant that `laneway setup service` has written: it is ended, and its file removed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial

from laneway.cli.bots import service_files
from laneway.cli.bots.service_files import ServicePlace
from laneway.cli.clients.show import short
from laneway.cli.uninstalling.model import Remnant, Surroundings


def find(around: Surroundings) -> Iterator[Remnant]:
    service = service_files.place(around.home, around.environment)
    if not os.path.lexists(service.file):
        return
    if not service_files.is_ours(service.file):
        why = "it was not written by `laneway setup`, or was changed since"
        yield Remnant("service", short(service.file), service.file, why=why)
        return
    yield Remnant("service", short(service.file), service.file, partial(_remove, service))


def _remove(service: ServicePlace) -> None:
    service_files.end_and_remove(service)
