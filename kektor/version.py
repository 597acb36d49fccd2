"""The version, which the native core must share."""

import kektor_native

__version__ = "0.1.0"

if kektor_native.__version__ != __version__:
    raise ImportError(
        f"kektor {__version__} needs kektor-native {__version__}, and found {kektor_native.__version__}: "
        "install both of one version (in a checkout: make setup)"
    )
