"""What crawls are tested against: small, deterministic, and without the internet.

    site     the network as a table: what each URL answers, misbehaviour included
    graph    seeded web graphs with a known answer
    log      what a site was asked, and when
    fakeweb  a site as an httpx transport, without a socket
    server   a site as a loopback server, in a thread or as a process of its own
    clock    a clock that moves when told to

A test makes a `Site`, serves it by `FakeWeb` (fast, no wire) or by `SiteServer` (the wire, and every misbehaviour on
it), crawls it, and compares the result with `Graph.answers` and the request log.
"""
