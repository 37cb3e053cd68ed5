"""/db2whrest: SQL over REST, searches, reports, and the tasks that they become."""
