"""The program `holomem`. It calls `Memory` and shows what comes back; it knows neither the file nor the arithmetic.

commands, entities, upkeep, model, doors, tour   one function per command: about facts, names, the whole memory, the model, the
                         programs that use it, the demo
render                   facts, hits and status as lines
program                  the click group: common options, opening the memory, errors to exit codes
console                  what text may do to a terminal, widths, tables, JSON
"""

import click

from holomem import __version__
from holomem.cli import commands, doors, entities, model, tour, upkeep
from holomem.cli import web as page
from holomem.cli.program import Program

__all__ = ["main"]


@click.group(
    "holomem",
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="A text that begins with a hyphen goes after `--`. Times without a zone are UTC.",
)
@click.version_option(__version__, prog_name="holomem", message="%(prog)s %(version)s")
def main() -> None:
    """Long-term memory for AI agents, in one SQLite file.

    Facts go in as sentences of any language and are found again by their words, their meaning and their names.
    Start with `holomem demo`.
    """


for _command in (  # in the order of `holomem --help`
    commands.add,
    commands.search,
    commands.probe,
    commands.related,
    commands.reason,
    commands.ask,
    commands.contradictions,
    commands.list_facts,
    commands.show,
    commands.edit,
    commands.remove,
    commands.feedback,
    commands.history,
    commands.undo,
    entities.entities,
    upkeep.import_facts,
    upkeep.export_facts,
    upkeep.backfill,
    upkeep.reembed,
    upkeep.status,
    upkeep.doctor,
    upkeep.purge,
    upkeep.backup,
    model.model,
    page.web,
    doors.hermes,
    doors.mcp,
    tour.show_demo,
):
    main.add_command(_command)
