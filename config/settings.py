"""Humanval's settings: one file, the environment read in one block at its top.

Every name is explained in docs/settings.md; a test fails for one that is not.
"""

import os
import re
from datetime import timedelta
from pathlib import Path

import environ
import structlog
from django.templatetags.static import static
from django.urls import reverse_lazy

from analysis.reports.catalogue import REPORTS
from config import embedded
from config.state import make_state_folder, secret

BASE_DIR = Path(__file__).resolve().parent.parent

# Read when torch is loaded, which comes later. Its threads wait for each other at every product of matrices; if they
# spin meanwhile, a single other busy process makes a generation worker several times slower.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# --- The environment -------------------------------------------------------------------
env = environ.Env()

VAR = make_state_folder(Path(env.str("HUMANVAL_VAR", default="") or BASE_DIR / "var"))
DEBUG = env.bool("DEBUG", default=False)
SECRET_KEY = env.str("SECRET_KEY", default="") or secret(VAR, "secret_key")
WORKER_HASH_SALT = env.str("HUMANVAL_WORKER_HASH_SALT", default="") or secret(VAR, "worker_hash_salt")
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])
HTTPS = env.bool("HUMANVAL_HTTPS", default=True)
PROXIES = env.int("HUMANVAL_PROXIES", default=0)
SITE_URL = env.str("HUMANVAL_SITE_URL", default="http://localhost:8000").rstrip("/")
DATABASE_URL = env.str("DATABASE_URL", default="")
CELERY_BROKER_URL = env.str("CELERY_BROKER_URL", default="")
LANGUAGE_MODEL = env.str("HUMANVAL_LANGUAGE_MODEL", default="smollm2-135m-instruct")
COMPLETIONS_KEY = env.str("HUMANVAL_COMPLETIONS_KEY", default="")
CLASSIFIER = env.str("HUMANVAL_CLASSIFIER", default="minilm-toxigen")
ALLOW_DOWNLOADS = env.bool("HUMANVAL_ALLOW_DOWNLOADS", default=False)
DEVICE = env.str("HUMANVAL_DEVICE", default="auto")
CHUNK_SIZE = env.int("HUMANVAL_CHUNK_SIZE", default=16)
LEASE_SECONDS = env.int("HUMANVAL_LEASE_SECONDS", default=60)
API_RATE = env.str("HUMANVAL_API_RATE", default="1200/minute")
API_ANONYMOUS_RATE = env.str("HUMANVAL_API_ANONYMOUS_RATE", default="60/minute")
LARGEST_UPLOAD_MB = env.int("HUMANVAL_LARGEST_UPLOAD_MB", default=1024)
LOG_FORMAT = env.str("HUMANVAL_LOG_FORMAT", default="json")
# ----------------------------------------------------------------------------------------

INSTALLED_APPS = [
    "generation",
    "annotator",
    "analysis",
    "config",
    "unfold",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "axes",
    "csp",
    "django_htmx",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "knox",
    "rest_framework",
    "simple_history",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "config.security.ContentSecurityPolicy",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "simple_history.middleware.HistoryRequestMiddleware",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# --- Database: PostgreSQL only, our own where none is named -------------------------------
DATABASES = {"default": env.db_url_config(DATABASE_URL) if DATABASE_URL else embedded.start(VAR)}
DATABASES["default"] |= {"CONN_MAX_AGE": 60, "CONN_HEALTH_CHECKS": True}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- Queue: wake-ups only, so that a lost or doubled message changes nothing ---------------
if not CELERY_BROKER_URL:
    CELERY_BROKER_URL = "filesystem://localhost/"
    QUEUE = VAR / "queue"
    for folder in (QUEUE / "messages", QUEUE / "control"):
        folder.mkdir(parents=True, exist_ok=True)
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "data_folder_in": str(QUEUE / "messages"),
        "data_folder_out": str(QUEUE / "messages"),
        "control_folder": str(QUEUE / "control"),
    }
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_TASK_ROUTES = {"generation.work_on_run": {"queue": "generation"}}
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_BEAT_SCHEDULE_FILENAME = str(VAR / "celerybeat-schedule")
CELERY_BEAT_SCHEDULE = {
    "wake runs that nobody works on": {"task": "generation.wake_open_runs", "schedule": 5.0, "options": {"expires": 5}},
    "publish new statements": {"task": "annotator.publish_new_statements", "schedule": 3.0, "options": {"expires": 3}},
    "clear lapsed sessions": {"task": "config.clear_sessions", "schedule": 24 * 3600.0},
    "settle qualification tests": {"task": "annotator.finish_tests", "schedule": 30.0, "options": {"expires": 30}},
    "expire lapsed assignments": {"task": "annotator.expire_assignments", "schedule": 30.0, "options": {"expires": 30}},
    "approve overdue work": {"task": "annotator.approve_overdue", "schedule": 60.0, "options": {"expires": 60}},
    "wake imports that nobody works on": {"task": "analysis.wake_imports", "schedule": 5.0, "options": {"expires": 5}},
    "wake sets that nobody works on": {"task": "analysis.wake_humanval", "schedule": 5.0, "options": {"expires": 5}},
    "wake classifiers that nobody works on": {
        "task": "analysis.wake_classifiers",
        "schedule": 5.0,
        "options": {"expires": 5},
    },
    "wake reports that nobody works on": {"task": "analysis.wake_reports", "schedule": 5.0, "options": {"expires": 5}},
    "refresh reports": {
        "task": "analysis.refresh_reports",
        "schedule": 60.0,
        "options": {"expires": 60, "queue": "reports"},
    },
}

# --- Security ------------------------------------------------------------------------------
SECURE_SSL_REDIRECT = HTTPS
SECURE_HSTS_SECONDS = 365 * 24 * 3600 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SESSION_ENGINE = "config.sessions"
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
CSRF_FAILURE_VIEW = "config.refusals.csrf_failure"
X_FRAME_OPTIONS = "DENY"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
LOGIN_URL = reverse_lazy("admin:login")
LOGIN_REDIRECT_URL = reverse_lazy("admin:index")
# Log-ins are limited by name and address together: nobody can lock somebody else out from elsewhere.
AUTHENTICATION_BACKENDS = ["config.security.LimitedLogIn", "django.contrib.auth.backends.ModelBackend"]
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_USERNAME_CALLABLE = "config.security.log_in_name"
AXES_CLIENT_IP_CALLABLE = "config.security.client_address"
AXES_LOCKOUT_CALLABLE = "config.security.too_many_log_ins"
AXES_RESET_ON_SUCCESS = True
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_DISABLE_ACCESS_LOG = True
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False

SELF = "'self'"
NONE = "'none'"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "style-src": [SELF],
        "script-src": [SELF],
        "img-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
    }
}
# django-unfold's Alpine evaluates expressions and sets styles; Plotly draws a PNG from a blob. Annotators never see
# these pages.
ADMIN_CONTENT_SECURITY_POLICY = {
    "style-src": [SELF, "'unsafe-inline'"],
    "script-src": [SELF, "'unsafe-inline'", "'unsafe-eval'"],
    "img-src": [SELF, "data:", "blob:"],
    "font-src": [SELF],
}

# --- Language, time, files -------------------------------------------------------------------
LANGUAGE_CODE = "en-us"
FORMAT_MODULE_PATH = "config.formats"
TIME_ZONE = "UTC"
USE_TZ = True
STATIC_URL = "static/"
STATIC_ROOT = VAR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "config.static_files.PlotlyFinder",
]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}

# --- API ---------------------------------------------------------------------------------------
REST_FRAMEWORK = {
    # The token first: it decides that who is unknown is told so by 401.
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "config.api.authentication.BearerToken",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["config.api.permissions.ByModel"],
    "DEFAULT_PAGINATION_CLASS": "config.api.paging.Pages",
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_SCHEMA_CLASS": "config.api.schema.Description",
    "DEFAULT_THROTTLE_CLASSES": [
        "rest_framework.throttling.AnonRateThrottle",
        "rest_framework.throttling.UserRateThrottle",
    ],
    "DEFAULT_THROTTLE_RATES": {"anon": API_ANONYMOUS_RATE, "user": API_RATE},
    "DEFAULT_METADATA_CLASS": None,
    "EXCEPTION_HANDLER": "config.api.problems.answer",
    "NON_FIELD_ERRORS_KEY": "request",
    "NUM_PROXIES": PROXIES,
    "URL_FORMAT_OVERRIDE": None,
}
REST_KNOX = {"AUTH_HEADER_PREFIX": "Bearer"}
SPECTACULAR_SETTINGS = {
    "TITLE": "Humanval",
    "DESCRIPTION": (
        "Everything of the workspace, for scripts. **Texts are sent as they were written and may hurt: nothing is "
        "blurred here.** Lists come in pages, newest first; `next` is the address of the page after. Errors are "
        "problem details (RFC 9457)."
    ),
    "VERSION": "1",
    "OAS_VERSION": "3.1.1",
    "SCHEMA_PATH_PREFIX": "/api/",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.IsAdminUser"],
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_NAME_OVERRIDES": {
        "BadBecause": "generation.models.BadBecause",
        "Label": "generation.models.Label",
        "LabelSource": "analysis.models.LabelSource",
        "Method": "generation.models.Method",
        "DecodingMethod": "annotator.api.choices.METHODS",
        "ReaderKind": "generation.models.ReaderKind",
        "RunMethod": "generation.models.RunMethod",
        "RunState": "generation.models.RunState",
        "HITState": "annotator.models.HITStatus",
        "TrainingKind": "analysis.models.TrainingKind",
        "TrainingMethods": "analysis.models.TrainingMethods",
        "Scale": "annotator.api.assignments.SCALE",
        "YesMaybeNo": "annotator.api.assignments.YES_MAYBE_NO",
    },
    "ENABLE_DJANGO_DEPLOY_CHECK": False,
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "config.api.schema.describe_problems",
    ],
}

# --- Logs: one JSON object a line ------------------------------------------------------------
SHARED_LOG_PROCESSORS = [
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.format_exc_info,
]
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "structured": {
            "()": structlog.stdlib.ProcessorFormatter,
            "processors": [
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer()
                if LOG_FORMAT == "json"
                else structlog.dev.ConsoleRenderer(colors=False),
            ],
            "foreign_pre_chain": SHARED_LOG_PROCESSORS,
        }
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "structured"}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {name: {"level": "INFO"} for name in ("generation", "annotator", "analysis")},
}
structlog.configure(
    processors=[
        structlog.contextvars.merge_contextvars,
        *SHARED_LOG_PROCESSORS,
        structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
    ],
    logger_factory=structlog.stdlib.LoggerFactory(),
    wrapper_class=structlog.stdlib.BoundLogger,
    cache_logger_on_first_use=True,
)


# --- The admin, in the order of the flow --------------------------------------------------------
def admin_link(title, icon, url_name, permission):
    """A sidebar entry, shown to those who may open it."""
    return {
        "title": title,
        "icon": icon,
        "link": reverse_lazy(url_name),
        "permission": lambda request: request.user.has_perm(permission),
    }


def dashboard_link(page, title, icon):
    """The same of a dashboard, which shows the reports that one may see."""
    return {
        "title": title,
        "icon": icon,
        "link": reverse_lazy("report", args=[page]),
        "permission": lambda request: any(
            request.user.has_perms(kind.permissions) for kind in REPORTS.values() if kind.page == page
        ),
    }


UNFOLD = {
    "SITE_TITLE": "Humanval",
    "SITE_HEADER": "Humanval",
    "SITE_SUBHEADER": "Human validation of generated text",
    "SITE_SYMBOL": "how_to_reg",
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": lambda request: static("annotator/icon.svg")}],
    "SHOW_HISTORY": True,
    "DASHBOARD_CALLBACK": "analysis.dashboards.overview",
    "COLORS": {
        "primary": {
            "50": "#f0f3ff",
            "100": "#e2e8ff",
            "200": "#c9d3ff",
            "300": "#a3b4ff",
            "400": "#7d92f5",
            "500": "#5670e6",
            "600": "#3450c8",
            "700": "#2b42a6",
            "800": "#243685",
            "900": "#1f2e6b",
            "950": "#141c42",
        }
    },
    "STYLES": [lambda request: static("workspace/workspace.css")],
    "SIDEBAR": {
        "show_search": False,
        "navigation": [
            {"items": [admin_link("Overview", "home", "admin:index", "annotator.view_hittype")]},
            {
                "title": "Generate",
                "items": [
                    admin_link(
                        "Groups", "groups", "admin:generation_targetgroup_changelist", "generation.view_targetgroup"
                    ),
                    {
                        **admin_link(
                            "Demonstrations",
                            "format_quote",
                            "admin:generation_sets",
                            "generation.view_demonstration",
                        ),
                        "active": lambda request: request.path.startswith("/admin/generation/demonstration/"),
                    },
                    admin_link(
                        "Runs",
                        "play_circle",
                        "admin:generation_generationrun_changelist",
                        "generation.view_generationrun",
                    ),
                    admin_link(
                        "Generations", "notes", "admin:generation_generation_changelist", "generation.view_generation"
                    ),
                    admin_link(
                        "Readings", "troubleshoot", "admin:generation_reading_changelist", "generation.view_reading"
                    ),
                ],
            },
            {
                "title": "Annotate",
                "items": [
                    admin_link("Studies", "assignment", "admin:annotator_hittype_changelist", "annotator.view_hittype"),
                    admin_link("HITs", "fact_check", "admin:annotator_hit_changelist", "annotator.view_hit"),
                    {
                        **admin_link("Review", "rate_review", "admin:annotator_review", "annotator.view_assignment"),
                        "badge": "annotator.admin.review.waiting",
                        "badge_variant": "primary",
                    },
                    {
                        **admin_link(
                            "Assignments",
                            "assignment_ind",
                            "admin:annotator_assignment_changelist",
                            "annotator.view_assignment",
                        ),
                        # Below its address lies the review, which has an entry of its own.
                        "active": lambda request: re.match(r"/admin/annotator/assignment/(?!review/)", request.path),
                    },
                    admin_link(
                        "Known answers",
                        "verified",
                        "admin:annotator_knownanswers_changelist",
                        "annotator.view_knownanswers",
                    ),
                    admin_link("Workers", "badge", "admin:annotator_worker_changelist", "annotator.view_worker"),
                    admin_link(
                        "Qualifications",
                        "workspace_premium",
                        "admin:annotator_qualification_changelist",
                        "annotator.view_qualification",
                    ),
                    admin_link("Panels", "groups_2", "admin:annotator_panel_changelist", "annotator.view_panel"),
                    admin_link(
                        "Invitations", "mail", "admin:annotator_invitation_changelist", "annotator.view_invitation"
                    ),
                    admin_link("Ledger", "payments", "admin:annotator_payment_changelist", "annotator.view_payment"),
                    admin_link("Payouts", "outbox", "admin:annotator_payout_changelist", "annotator.view_payout"),
                    admin_link(
                        "Consent forms",
                        "handshake",
                        "admin:annotator_consentform_changelist",
                        "annotator.view_consentform",
                    ),
                    admin_link(
                        "Help lines", "support", "admin:annotator_helpline_changelist", "annotator.view_helpline"
                    ),
                ],
            },
            {
                "title": "Analyse",
                "items": [
                    dashboard_link("agreement", "Agreement", "balance"),
                    dashboard_link("human-validation", "Human validation", "how_to_vote"),
                    dashboard_link("methods", "ALICE vs top-k", "compare_arrows"),
                    dashboard_link("dataset", "Dataset", "dataset"),
                    dashboard_link("classifiers", "Classifiers", "neurology"),
                    dashboard_link("annotators", "Annotators and pay", "insights"),
                    admin_link("Demographics", "groups_2", "demographics", "annotator.view_worker"),
                    admin_link(
                        "HUMANVAL", "quiz", "admin:analysis_humanvalset_changelist", "analysis.view_humanvalset"
                    ),
                    admin_link(
                        "Training",
                        "model_training",
                        "admin:analysis_trainedclassifier_changelist",
                        "analysis.view_trainedclassifier",
                    ),
                    admin_link(
                        "Test sets",
                        "checklist",
                        "admin:analysis_evaluationset_changelist",
                        "analysis.view_evaluationset",
                    ),
                    admin_link(
                        "Evaluations", "grading", "admin:analysis_evaluation_changelist", "analysis.view_evaluation"
                    ),
                ],
            },
            {
                "title": "Data",
                "items": [
                    admin_link("Import", "upload", "admin:analysis_dataimport_changelist", "analysis.view_dataimport"),
                    admin_link("Export", "download", "export", "generation.view_generation"),
                    {
                        "title": "API",
                        "icon": "key",
                        "link": reverse_lazy("tokens"),
                        "permission": lambda request: request.user.is_staff,
                    },
                    admin_link(
                        "Audit trail", "history", "admin:generation_auditentry_changelist", "generation.view_auditentry"
                    ),
                ],
            },
            {
                "title": "Access",
                "items": [
                    admin_link("Users", "person", "admin:auth_user_changelist", "auth.view_user"),
                    admin_link("Roles", "shield_person", "admin:auth_group_changelist", "auth.view_group"),
                ],
            },
        ],
    },
}
