"""The only code that knows LevelDB, and the on-disk format (version 1).

Modules, from the bottom: `keys` (with `letter_keys`) names rows, `codec` turns values into bytes, `store` is the database
and its overlay, `bloom` and `seen` the seen-set, `head` a window on a range, `hosts`, `pages`, `origins`, `sitemaps`,
`templates`, `duplicates`, `content`, `letters`, `refusals` and `counters` one kind of row each, `extents` the archive's,
`frontier` and `distances` what happens to URLs, `layout`, `directory` and `checkpoint` the files beside the database, `logs`
what LevelDB's own files must not have lost, `space` what is left of the disk, `partitions` a crawl in partitions, `opening`
and `reading` the way in, `merging` partitions read as one, `leaving` and `moving` what changes partitions, `looking` a view
of one URL or host, `crawl` the whole, `copying` what is sent of one that runs. `verify` (with `verify_alike`,
`verify_refusals`, `verify_sitemaps`, `findings` and `tally`) checks all of it, `salvage` reads what is left of a damaged
one, `damage` says so.

Rows. Numbers in keys are big-endian and of fixed width; values are MessagePack arrays unless said otherwise.

    prefix  key after the prefix                                value
    m       name                                                batch (8 bytes), counters, config (JSON), private (JSON),
                                                                rescan, indexed (empty: rows d and n are kept),
                                                                incoming (`moving.Incoming`)
    b       batch's number mod 64 (1)                           batch's number (8 bytes)
    g       number (8)                                          a seed's URL
    l       number (8)                                          a run of the ledger (`checkpoint.Run`)
    h       host id (8)                                         host record (`hosts.HostRecord`)
    s       host id (8), URL id (10)                            seen entry: state, depth, hops*[, tail of the row's key]
    q       host id (8), priority (1), sequence (8)             queued row (`codec.QueueRow`)
    t       due, ms since the epoch (8), sequence (8)           row to be tried again then (`codec.QueueRow`)
    r       depth (4), URL's hash (16)                          URL whose edges are to be walked again (`codec.QueueRow`)
    o       origin's hash (16)                                  robots.txt of an origin, zstd (`origins.OriginRecord`)
    x       name's hash (8)                                     account of a template or host (`templates.AccountRecord`)
    y       name's hash (8)                                     what it remembers, zstd (`templates.MemoryRecord`)
    w       hash of the host's name (8), depth (1), URL's hash  page some of whose links wait for credit (`templates.HeldRow`)
            (10)
    u       host id (8), URL id (10)                            why a URL was refused (`refusals.RefusalRow`)
    c       the URL                                             what is kept of a page beside it, zstd (`model.Content`)
    d       hash of the body's digest (16), the URL             empty: a page of these bytes
    n       band (1), SimHash turned by 16 bits a band (8),     empty: a page of this SimHash
            the URL
    k       sitemap's hash (16)                                 a sitemap (`sitemaps.SitemapRow`)
    i       host id (8), URL id (10)                            URL of a sitemap that waits to be read
    v       the URL                                             what sitemaps say of it: lastmod, priority
    p       the URL                                             depth (4), hops* (1), record, zstd (`model.Record`)
    F       number of a file of the archive (4)                 its size in bytes (8 bytes)
    E       file (4), offset (8)                                what the archive holds there (`exchange.Extent`)
    U       URL's hash (16), file (4), offset (8)               nothing: its extents
    D       SHA-256 of a body as archived (32)                  file (4), offset (8) of the response that it was first in
    O       virtual node (2), number (8)                        what its partition is to be told (`letters.Letter`)
    N       virtual node (2)                                    number (8) of the last letter to it
    H       virtual node (2), sender (2)                        number (8) of the last letter of a partition that was taken in

Hops (*) share their number with the bits of `model.Source`, which lie above its lowest four. Host and URL ids are BLAKE2b of 8
and 10 bytes with a personal string each (`keys`). A host's back queue is the range `q` + host id, ordered by priority (the
depth, at most 255), then sequence. Example: the seed `http://a.test/` of a new crawl is

    s f9f4.. (18 bytes)            [0, 0, 32, 00 0000000000000001]
    q f9f4.. (8) 00 0000000000000001 ["http://a.test/", "a.test", 0, 0, 0, 0.0, null, 2, null, null]

Where there is an archive, its bytes are synced first. A checkpoint is one synced batch with all that settled since the last
one: the record `p`, the removal of `q`, the entry `s` with state 2, the rows of URLs that are new, the host, the counters and
the batch's number, and where the archive holds it all. Then `CHECKPOINT` is replaced. Nothing is ever written un-synced:
LevelDB starts a new log without syncing the old one, so un-synced batches can vanish out of order.
"""
