"""What crawls are tested against: small, deterministic, and without the internet.

    site        the network as a table: what each URL answers, misbehaviour included
    graph       seeded web graphs with a known answer
    log         what a site was asked, and when
    fakeweb     a site as an httpx transport, without a socket
    server      a site as a loopback server, in a thread or as a process of its own
    clock       a clock that moves when told to
    world       a seeded web as a function, with manners and faults, and what a crawl of it has to find
    watch       the web's side of a simulated crawl: answers, and checks manners and repeats
    outcome     what came of a simulated crawl, against what its world says
    simulation  whole crawls without network or sleep, killed at random, against a world's answer
    failpoints  a command that dies, or whose disk fails, at a named boundary of the commit protocol
    forks       commands as children that are forked, in milliseconds, each with faults of its own
    powerloss   what is left on disk of a killed crawl when nothing that was not synced need be
    torture     random crawls killed at random, finished and compared (`scripts/crash`)

A test makes a `Site`, serves it by `FakeWeb` (fast, no wire) or by `SiteServer` (the wire, and every misbehaviour on
it), crawls it, and compares the result with `Graph.answers` and the request log.
"""
