"""What people and programs see of a crawl: the command line, settings, reports.

In the order an invocation meets them:

1. `options`: the command line's options, one for each key of the settings.
2. `settings`: gathers the settings in force from defaults, files, environment and options, and remembers where each
   came from.
3. `config_command`: `crawlkit config show` and `check`.
4. `cli`: the command line; `commands`: where each command is, imported when it is asked for.
5. `lines`: a record as a report shows it: the list of its fields; `selection`: which are shown; `report`: records as text,
   JSON lines or CSV.
6. `exports`: records in the formats of other programs.
7. `health`: views on what the owner of a site would mend.
8. `diff`: two crawls compared.
9. `search`: pages found by their words.

Nothing below imports from here. Data goes to standard output, all else to standard error.
"""
