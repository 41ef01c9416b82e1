"""Passages: what recurs in texts, token for token: anchors -> runs -> places; what is cut."""
