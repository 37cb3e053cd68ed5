"""Login by an OpenID provider: its documents, its tokens, what groups may."""
