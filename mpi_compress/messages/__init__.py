"""Messages: kinds of compressed vectors, compressors, codecs, costs, and the link that makes bytes of vectors."""
