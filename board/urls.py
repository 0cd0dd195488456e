"""Every address of the product."""

from django.urls import URLPattern, URLResolver, include, path

from board.views import accounts, health, projects

handler400 = "board.views.errors.bad_request"
handler403 = "board.views.errors.forbidden"
handler404 = "board.views.errors.not_found"
handler500 = "board.views.errors.broken"

urlpatterns: list[URLPattern | URLResolver] = [
    path("", projects.list_all, name="projects"),
    path("healthz", health.show, name="healthz"),
    path("signin/", accounts.sign_in, name="signin"),
    path("signout/", accounts.sign_out, name="signout"),
    path("api/v1/", include("board.api.urls")),
]
