"""``python -m reproduction``, from the top of a clone."""

import typer

from reproduction.command import EPILOG, reproduce

app = typer.Typer(add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False)
app.command(epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})(reproduce)

if __name__ == "__main__":
    app()
