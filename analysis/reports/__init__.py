"""The paper's tables and figures from live data: each report one module, all of them in ``catalogue``."""
