"""Fill the page's templates."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from typing import Any

from expecta.common.text import printable


def check_libraries() -> None:
    """Complain where a library is missing that a report needs."""
    try:
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
    except ImportError as missing:
        raise ImportError(
            f"a report needs Jinja2 and matplotlib, and there is no {missing.name}; install both "
            f"by: pip install 'expecta[report]'"
        ) from None


def render_page(**context: Any) -> str:
    """Return the page as HTML; every text is escaped.

    Its policy lets a browser load nothing, and run the one script that it has.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("expecta.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if hasattr(value, "__html__") else printable(str(value)),
    )
    style, script = _file("style.css"), _file("theme.js")
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        f"base-uri 'none'; form-action 'none'"
    )
    template = environment.get_template("report.html")
    return template.render(style=style, script=script, policy=policy, **context)


def _file(name: str) -> str:
    return (files("expecta.report") / "templates" / name).read_text("utf-8")


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
