"""Puts the API together. Its description for programs is /api/v1/openapi.json; nothing in it is a page."""

from ninja import NinjaAPI

from board import __version__
from board.api import approvals, cards, events, failures, policies, projects, runs
from board.api.bodies import StrictParser
from board.api.tokens import Bearer

api = NinjaAPI(
    title="Pullcord",
    version=__version__,
    description="The same actions and the same rights as on the pages.",
    openapi_url="/openapi.json",
    docs_url=None,
    auth=Bearer(),
    parser=StrictParser(),
    urls_namespace="api",
)
failures.connect(api)
for module in (projects, policies, cards, runs, approvals, events):
    api.add_router("", module.router)
