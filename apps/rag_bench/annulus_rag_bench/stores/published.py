"""The statements of the published code for Cassandra, word for word. They run unchanged on Annulus and on Cassandra.

The published code inserts by a SimpleStatement, so that `%s` is the driver's marker, and prepares the SELECT.
"""

KEYSPACE = "vectorembeds"
CREATE_KEYSPACE = (
    "CREATE KEYSPACE IF NOT EXISTS vectorembeds "
    "WITH replication = {'class': 'SimpleStrategy', 'replication_factor': '1'}"
)
CREATE_TABLE = (
    "CREATE TABLE IF NOT EXISTS vectorembeds.articles (url TEXT PRIMARY KEY, title TEXT, body TEXT, "
    "publication_date TIMESTAMP, vector VECTOR<FLOAT, 384>)"
)
# After USE vectorembeds.
CREATE_INDEX = "CREATE CUSTOM INDEX IF NOT EXISTS ann_index ON articles(vector) USING 'StorageAttachedIndex'"
INSERT = "INSERT INTO articles (url, title, body, publication_date, vector) VALUES (%s, %s, %s, %s, %s) IF NOT EXISTS"
SELECT = "SELECT url, title, body, publication_date FROM articles ORDER BY vector ANN OF ? LIMIT ?"
