"""What joins policy, state and net: a crawl from its start to its end.

Modules, in the order a run meets them: `session` puts the parts together, `loop` drives them (asyncio), `steps` chooses what is
next, `coordinator` owns the state (synchronous), `admission`, `robots` and `schedule` are its parts, `worker` carries out jobs,
`ending` names how a run ends, `signals` turns signals into stops.
"""
