"""What commands print: the rows of each answer, and the words beside it."""
