"""From a question, in Db2 SQL or as label ranges, to rows and ordered frames."""
