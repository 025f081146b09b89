"""The part of SGLang's package tree that the engine adapter looks at."""
