"""Files of records written anew: without some records, or with other texts."""
