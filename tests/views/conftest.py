"""What tests of views share."""


def write(folder, texts):
    """Write a file for each name and text."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
