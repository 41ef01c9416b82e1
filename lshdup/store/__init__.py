"""The artifacts that are kept between runs, in `.lshdup/`."""
