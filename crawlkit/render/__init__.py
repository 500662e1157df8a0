"""The only code that knows a browser: Chromium without a screen, through Playwright, an extra (`crawlkit[render]`).

Modules: `finding` (where a browser is installed), `launching` (one that reaches no network, with bounded memory), `browser`
(kept running, replaced when it ends), `page` (one document shown, its wishes asked for, its markup read), `patience` (the
time it may take).

Nothing in here makes a request: what a page asks for is handed to whoever asked for it to be rendered.
"""
