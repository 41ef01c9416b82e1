"""Bytes of a document -> UTF-8 text: encodings, HTML, mail, office documents."""
