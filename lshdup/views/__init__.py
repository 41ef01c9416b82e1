"""Results for people: why two documents match, and the HTML page."""
