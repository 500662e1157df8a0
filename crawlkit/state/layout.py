"""The names of the files in a crawl directory.

CRAWL        format version and crawl id; written last when a crawl is made: without it nothing is opened
CHECKPOINT   what the last batch held, in short (`state.checkpoint`)
config.toml  a readable copy of the settings, which the database holds
LOCK         flock decides who owns the crawl; its text (pid) only informs
db/          LevelDB
db.torn/     tails of logs that a power cut tore, cut off where the last checkpoint ended (`state.logs`)
seen.bloom   the Bloom filter's bits
control.sock  where a running crawl is asked and steered; removed when the run ends
search.sqlite  the index of `crawlkit search`: a cache of one batch
warc/        the archive's files (`archive.files`)

A crawl in partitions has, beside CRAWL, config.toml, LOCK and control.sock, no database of its own, but

PARTITIONS   which partitions there are, and which virtual node is whose (`state.partitions`)
SEEDS        the seeds that span the scope, one a line
partitions/  a crawl directory as above for each: 000, 001, ...
PLACES       on Ray, the name of the machine that has each partition (`cluster.on_ray.machines`)
"""

CRAWL = "CRAWL"
CHECKPOINT = "CHECKPOINT"
CONFIG = "config.toml"
LOCK = "LOCK"
DATABASE = "db"
TORN = "db.torn"
BLOOM = "seen.bloom"
SEARCH = "search.sqlite"
ARCHIVE = "warc"
CONTROL = "control.sock"
PARTITIONS = "PARTITIONS"
SEEDS = "SEEDS"
PLACES = "PLACES"
MEMBERS = "partitions"
OURS = frozenset(
    {CRAWL, CHECKPOINT, CONFIG, LOCK, DATABASE, TORN, BLOOM, SEARCH, ARCHIVE, CONTROL, PARTITIONS, SEEDS, PLACES, MEMBERS}
)
