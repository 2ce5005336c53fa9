"""The API's own pages: its description, the docs to read, the page of one's tokens, the end of unknown addresses."""

from csp.decorators import csp_update
from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.views.decorators import staff_member_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from drf_spectacular.views import SpectacularAPIView
from knox.models import AuthToken
from rest_framework.exceptions import NotFound
from rest_framework.permissions import AllowAny
from rest_framework.views import APIView
from unfold.widgets import UnfoldAdminSelectWidget

from config import tokens


class Schema(SpectacularAPIView):
    """OpenAPI, to make clients from."""


class Unknown(APIView):
    """Any other address."""

    permission_classes = [AllowAny]
    schema = None

    def initial(self, request, *args, **kwargs) -> None:
        path = request.path
        hint = "" if path.endswith("/") else f" Addresses here end with a slash: {path}/."
        raise NotFound(f"There is no address {path} in the API.{hint} /api/docs/ lists all that there are.")


@staff_member_required
@csp_update({"style-src": "'unsafe-inline'", "img-src": "data:"})
def docs(request: HttpRequest) -> HttpResponse:
    """The API to read and to try, without anything from elsewhere. Swagger UI sets styles by itself."""
    return render(request, "api/docs.html")


class TokenForm(forms.Form):
    days = forms.TypedChoiceField(
        label="It lasts for",
        coerce=int,
        choices=[(days, f"{days} days" if days > 1 else "1 day") for days in tokens.LASTS_FOR_DAYS],
        initial=90,
        widget=UnfoldAdminSelectWidget,
    )


@never_cache
def own_tokens(request: HttpRequest) -> HttpResponse:
    """One's own tokens; POST makes one, which is shown once, or revokes one."""
    made = None
    makes_one = request.method == "POST" and "revoke" not in request.POST
    form = TokenForm(request.POST if makes_one else None)
    if form.is_valid():
        _, made = tokens.make_token(user=request.user, days=form.cleaned_data["days"])
        form = TokenForm()
    elif key := request.POST.get("revoke"):
        if tokens.revoke_token(user=request.user, token_key=key[:25].replace("\x00", "")):
            messages.success(request, f"The token {key}… is revoked: it opens nothing any more.")
        else:
            messages.info(request, "That token is none of yours, or was revoked before.")
        return redirect("tokens")
    context = {
        **admin.site.each_context(request),
        "title": "API",
        "form": form,
        "made": made,
        "site": settings.SITE_URL,
        "now": timezone.now(),
        "tokens": AuthToken.objects.filter(user=request.user).order_by("-created"),
    }
    return render(request, "admin/tokens.html", context, status=422 if form.is_bound else 200)
